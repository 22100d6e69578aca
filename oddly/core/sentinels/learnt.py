"""Whether a network has learnt enough for its verdict to be trusted."""

from __future__ import annotations

from torch import Tensor

from oddly.core.sentinels.cut import share_of_vague

SOUND = 0.1  # share of best-fitting examples: their labels are right even if most are wrong
NOTHING = 5.0  # the contrast if right and wrong labels do not differ: nothing was learnt
LEARNT = 6.5  # below this contrast no verdict is trusted; …
VAGUE = 13.0  # … this times the share that looks wrong but not entirely random is added, …
SURE = 8.5  # … but above this contrast every verdict is trusted
HARDLY = 0.9  # below this share of the needed contrast, only the sentinels' upper half counts
MOST = 0.5  # removing a larger share of the examples is suspicious
# Chosen on trainings with known truth, good and bad ones: docs/constants.md, "Not to be trusted".


def contrast(sentinels: Tensor, examples: Tensor) -> float:
    """How far the upper half of the sentinels' scores lies above the lowest tenth of all examples'.

    Both tensors are in ascending order. The unit is the standard deviation of these parts: normal
    scores that do not differ at all have a contrast of 5.0. That tenth contains no wrong labels,
    and that half contains no sentinels that got the true label by accident (frequent with two
    classes). So, unlike `separation`, it hardly depends on how many labels are wrong.
    """
    low, high = examples.double(), sentinels.double()
    low, high = low[: max(1, round(SOUND * len(low)))], high[len(high) // 2 :]
    spread = (low.var(correction=0) + high.var(correction=0)) / 2
    return float((high.mean() - low.mean()) / spread.sqrt().clamp(min=1e-12))


def contrast_needed(sentinels: Tensor, examples: Tensor, num_classes: int) -> float:
    """The contrast needed to trust a verdict on these scores, which ascend.

    It is higher if many examples score among the sentinels but not at the top: a network that has
    learnt only some classes takes right labels of the others for wrong ones. There is an upper
    bound, because noise that depends on the image looks like that too.
    """
    return min(LEARNT + VAGUE * share_of_vague(examples, sentinels, num_classes), SURE)


def trust(learnt: float, needed: float) -> float | None:
    """How far to trust a verdict: 1 from the needed contrast, 0 below nine tenths of it.

    None if nothing was learnt: such a verdict is no better than chance.
    """
    if learnt < NOTHING:
        return None
    return min(max((learnt / needed - HARDLY) / (1 - HARDLY), 0.0), 1.0)


def doubt_by_size(examples: int, removed: int) -> str | None:
    """Why not to trust a verdict without sentinels: the only evidence is how much it removes."""
    if removed <= MOST * examples:
        return None
    return (
        f"{removed:,} of {examples:,} examples are removed: unless most labels are wrong, the"
        " network has learnt too little to judge, so do not trust this verdict; train longer or"
        " raise the percentile"
    )
