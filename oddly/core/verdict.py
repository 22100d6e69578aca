"""Which examples stay and which go, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from oddly.core.counterfactual import Counterfactual
from oddly.errors import InputError

if TYPE_CHECKING:
    import pandas

FEWEST_EXAMPLES = 5  # a class smaller than this is too small to judge


@dataclass(frozen=True)
class Verdict:
    """The outcome of one pruning; tensors are on the CPU."""

    keep: Tensor  # (N,) bool, True stays
    losses: Tensor  # (N,) the ledger's statistic; NaN where an example was never seen
    labels: Tensor  # (N,) given labels as observed; -1 where never seen
    threshold: float
    percentile: float
    epoch: int
    """Finished epochs when it was made (the paper's E)."""
    counterfactual: Counterfactual
    spared_classes: tuple[int, ...] = ()
    """Classes kept whole: too small to judge, or the threshold would have emptied them."""

    @property
    def removed(self) -> Tensor:
        """Indices of the removed examples, most suspicious first."""
        indices = (~self.keep).nonzero().flatten()
        return indices[self.losses[indices].argsort(descending=True)]

    @property
    def removed_fraction(self) -> float:
        return float((~self.keep).sum()) / len(self.keep)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per example; `score` is larger for more suspicious ones."""
        import pandas as pd

        return pd.DataFrame(
            {
                "index": range(len(self.keep)),
                "given_label": self.labels.numpy(),
                "loss": self.losses.numpy(),
                "score": self.losses.numpy(),
                "counterfactual_percentile": self.counterfactual.percentile_of(self.losses).numpy(),
                "threshold": self.threshold,
                "keep": self.keep.numpy(),
            }
        )

    def __str__(self) -> str:
        removed = int((~self.keep).sum())
        return (
            f"epoch {self.epoch}: {removed:,} of {len(self.keep):,} examples removed"
            f" ({100 * self.removed_fraction:.1f} %), loss ≥ {self.threshold:.3f}"
            f" (percentile {self.percentile:g} of the counterfactual)"
        )


def judge(
    losses: Tensor,
    labels: Tensor,
    counterfactual: Counterfactual,
    percentile: float,
    epoch: int,
    num_classes: int,
    strict: bool = False,
) -> Verdict:
    """Keep the examples whose loss lies below the p-th percentile of the counterfactual.

    Examples never seen are kept: nothing is known against them. Classes too small to judge, or
    which would be emptied, are kept whole and named; `strict` raises instead.
    """
    threshold = counterfactual.threshold(percentile)
    losses, labels = losses.cpu(), labels.cpu()
    if math.isnan(threshold):
        raise InputError("the counterfactual's losses are NaN: the model's head is broken")
    remove = losses >= threshold  # False for NaN
    if bool(remove.any()) and bool((remove | losses.isnan()).all()):
        raise InputError(
            f"the verdict would remove all {len(losses):,} examples: every loss reaches the"
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
        remove &= ~spare[labels.long()]
    return Verdict(
        keep=remove.logical_not_(),
        losses=losses,
        labels=labels,
        threshold=threshold,
        percentile=percentile,
        epoch=epoch,
        counterfactual=counterfactual,
        spared_classes=tuple(spared.tolist()),
    )


def _classes_to_spare(remove: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Classes that would lose an example though they are tiny, or would lose every example."""
    known = labels >= 0
    total = torch.bincount(labels[known], minlength=num_classes)
    removed = torch.bincount(labels[known & remove], minlength=num_classes)
    touched = removed > 0
    return (touched & ((total < FEWEST_EXAMPLES) | (removed == total))).nonzero().flatten()
