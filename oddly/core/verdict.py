"""Which examples stay and which go, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from oddly.core.counterfactual import Counterfactual
from oddly.core.sentinels import cut_by_sentinels
from oddly.errors import InputError

if TYPE_CHECKING:
    import pandas

FEWEST_EXAMPLES = 5  # a class smaller than this is too small to judge
CHUNK = 2**22  # examples counted at a time, so that nothing but the masks grows with N


@dataclass(frozen=True, repr=False)  # N numbers, five times
class Verdict:
    """The outcome of one pruning; tensors are on the CPU."""

    keep: Tensor  # (N,) bool, True stays
    scores: Tensor  # (N,) larger = more suspicious; NaN where an example was never seen
    losses: Tensor  # (N,) cross-entropy of the given label
    labels: Tensor  # (N,) given labels as observed; -1 where never seen
    threshold: float
    """Scores from here on go."""
    percentile: float
    epoch: int
    """Finished epochs when it was made (the paper's E)."""
    counterfactual: Counterfactual
    """The scores of examples with random labels."""
    noise_rate: tuple[float, float, float] | None = None
    """Estimated share of wrong labels, with a lower and an upper figure; from sentinels only."""
    spared_classes: tuple[int, ...] = ()
    """Classes kept whole: too small to judge, or the threshold would have emptied them."""

    @property
    def removed(self) -> Tensor:
        """Indices of the removed examples, most suspicious first."""
        indices = (~self.keep).nonzero().flatten()
        return indices[self.scores[indices].argsort(descending=True)]

    @property
    def removed_fraction(self) -> float:
        return self.num_removed / len(self.keep)

    @property
    def num_removed(self) -> int:
        return len(self.keep) - int(self.keep.count_nonzero())  # sum() would widen the mask

    def to_pandas(self) -> pandas.DataFrame:
        """One row per example; `score` is larger for more suspicious ones."""
        import pandas as pd

        percentiles = self.counterfactual.percentile_of(self.scores)
        return pd.DataFrame(
            {
                "index": range(len(self.keep)),
                "given_label": self.labels.numpy(),
                "loss": self.losses.numpy(),
                "score": self.scores.numpy(),
                "counterfactual_percentile": percentiles.numpy(),
                "threshold": self.threshold,
                "keep": self.keep.numpy(),
            }
        )

    def __str__(self) -> str:
        return (
            f"epoch {self.epoch}: {self.num_removed:,} of {len(self.keep):,} examples removed"
            f" ({100 * self.removed_fraction:.1f} %), score ≥ {self.threshold:.3f}"
            f" (percentile {self.percentile:g}, {self.counterfactual.source})"
        )

    __repr__ = __str__

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values only, for a checkpoint."""
        return {**vars(self), "counterfactual": dict(vars(self.counterfactual))}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Verdict:
        state = {**state, "counterfactual": Counterfactual(**state["counterfactual"])}
        return cls(**state)


def judge(
    scores: Tensor,
    losses: Tensor,
    labels: Tensor,
    counterfactual: Counterfactual,
    percentile: float,
    epoch: int,
    num_classes: int,
    strict: bool = False,
) -> Verdict:
    """Keep the examples whose score lies below the p-th percentile of the counterfactual.

    Examples never seen are kept: nothing is known against them. Classes too small to judge, or
    which would be emptied, are kept whole and named; `strict` raises instead.
    """
    scores, losses, labels = scores.cpu(), losses.cpu(), labels.cpu()
    noise_rate = None
    if counterfactual.source == "sentinels":
        threshold, noise_rate = cut_by_sentinels(scores, counterfactual, percentile, num_classes)
    else:
        threshold = counterfactual.threshold(percentile)
    if math.isnan(threshold):
        raise InputError("the counterfactual is NaN: the model's outputs are broken")
    remove = scores >= threshold  # False for NaN
    if bool(remove.any()) and not bool((scores < threshold).any()):
        raise InputError(
            f"the verdict would remove all {len(scores):,} examples: every score reaches the"
            f" threshold {threshold:.3f} (percentile {percentile:g}); train longer before pruning,"
            " raise the percentile, or look for a broken model"
        )
    spared = _classes_to_spare(remove, labels, num_classes)
    if len(spared):
        if strict:
            raise InputError(
                f"the verdict would empty or touch classes too small to judge: {spared.tolist()}"
                " (strict)"
            )
        spare = torch.zeros(num_classes + 1, dtype=torch.bool)  # last slot: label unknown (-1)
        spare[spared] = True
        for part, given in zip(remove.split(CHUNK), labels.split(CHUNK), strict=True):
            part &= ~spare[given.long()]
    return Verdict(
        keep=remove.logical_not_(),
        scores=scores,
        losses=losses,
        labels=labels,
        threshold=threshold,
        percentile=percentile,
        epoch=epoch,
        counterfactual=counterfactual,
        noise_rate=noise_rate,
        spared_classes=tuple(spared.tolist()),
    )


def _classes_to_spare(remove: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Classes that would lose an example though they are tiny, or would lose every example."""
    counts = torch.zeros(num_classes + 1, 2, dtype=torch.int64)  # row 0: label unknown (-1)
    for part, given in zip(remove.split(CHUNK), labels.split(CHUNK), strict=True):
        slot = (given.int() + 1) * 2 + part  # class, then kept or removed
        counts += torch.bincount(slot, minlength=counts.numel()).view_as(counts)
    kept, removed = counts[1:].unbind(1)
    tiny = kept + removed < FEWEST_EXAMPLES
    return ((removed > 0) & (tiny | (kept == 0))).nonzero().flatten()
