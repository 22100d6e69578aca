"""Whether a network has learnt enough for its verdict to be believed."""

from __future__ import annotations

from torch import Tensor

from oddly.core.cut import share_of_vague

SOUND = 0.1  # of the examples, the best fitted: right ones even where most labels are wrong
NOTHING = 5.0  # contrast of normal scores that do not differ: less is nothing learnt at all
LEARNT = 6.5  # contrast without which no network is believed, …
VAGUE = 13.0  # … more, times the share of labels that look wrong but not wholly random, …
SURE = 8.5  # … and from which on every one is, whatever the share
HARDLY = 0.9  # of the needed contrast: below it nothing is made of the sentinels' lower half
MOST = 0.5  # of the examples removed: more than most people's labels deserve
# Chosen on trainings with known truth, good and bad ones: docs/constants.md, "Not to be trusted".


def contrast(sentinels: Tensor, examples: Tensor) -> float:
    """How far the upper half of the sentinels' scores lies above the lowest tenth of all examples'.

    Both in ascending order. In standard deviations of these parts: 5.0 for normal scores that do
    not differ at all. Wrong labels are not in that tenth, nor, in that half, sentinels that hit
    the true label by accident (often, with two classes): unlike `separation` it hardly depends on
    how many labels are wrong.
    """
    low, high = examples.double(), sentinels.double()
    low, high = low[: max(1, round(SOUND * len(low)))], high[len(high) // 2 :]
    spread = (low.var(correction=0) + high.var(correction=0)) / 2
    return float((high.mean() - low.mean()) / spread.sqrt().clamp(min=1e-12))


def contrast_needed(sentinels: Tensor, examples: Tensor, num_classes: int) -> float:
    """The contrast from which on a verdict on these scores, in ascending order, is believed.

    More where many examples lie among the sentinels, but not as far up as these: a network that
    has learnt some classes only takes the others' right labels for wrong ones. Up to a bound: noise
    that depends on the image looks like that too.
    """
    return min(LEARNT + VAGUE * share_of_vague(examples, sentinels, num_classes), SURE)


def trust(learnt: float, needed: float) -> float | None:
    """How much a verdict is believed: 1 from the needed contrast on, 0 from nine tenths down.

    None where nothing was learnt: such a verdict is no better than chance.
    """
    if learnt < NOTHING:
        return None
    return min(max((learnt / needed - HARDLY) / (1 - HARDLY), 0.0), 1.0)


def doubt_by_size(examples: int, removed: int) -> str | None:
    """Why not to trust a verdict without sentinels, against which only its own size can speak."""
    if removed <= MOST * examples:
        return None
    return (
        f"{removed:,} of {examples:,} examples are removed: unless most labels are wrong, the"
        " network has learnt too little to judge, so do not trust this verdict; train longer or"
        " raise the percentile"
    )
