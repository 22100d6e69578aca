"""The result of methods other than ODD: a verdict without a counterfactual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

SUSPICIOUS_SHARE = 0.5  # if a larger share is removed, warn
TOO_MANY = (
    "more than half of the examples are removed: unless most labels are wrong, the network has"
    " learnt too little to judge"
)


@dataclass(frozen=True, repr=False)
class Judgement:
    """Which examples a method judges mislabelled; tensors are on the CPU."""

    keep: Tensor  # (N,) bool
    scores: Tensor  # (N,) larger = more suspicious
    threshold: float | None
    """Examples with this score or more are judged mislabelled; None if it is not that simple."""
    epoch: int
    """Number of finished epochs when it was made."""
    rule: str
    """What makes an example suspicious, in a few words."""

    spared_classes: ClassVar[tuple[int, ...]] = ()

    @classmethod
    def by_threshold(cls, scores: Tensor, threshold: float, epoch: int, rule: str) -> Judgement:
        """Judge examples with a score of `threshold` or more mislabelled."""
        return cls.by_mask(scores < threshold, scores, epoch, rule, threshold)

    @classmethod
    def by_mask(
        cls, keep: Tensor, scores: Tensor, epoch: int, rule: str, threshold: float | None = None
    ) -> Judgement:
        """Keep the examples of the mask; if it is empty, it says nothing, so keep all of them."""
        if not bool(keep.any()):
            keep, rule = ~keep, f"{rule}; it would remove everything, so nothing is removed"
        return cls(keep.detach().cpu(), scores.detach().float().cpu(), threshold, epoch, rule)

    @classmethod
    def from_table(cls, table: Tensor, labels: Tensor, epoch: int, rule: str) -> Judgement:
        """Judge an example mislabelled if another class has the largest entry in its row (N, K).

        The score is the largest other entry less that of the label.
        """
        own = table.gather(1, labels[:, None]).squeeze(1)
        others = table.scatter(1, labels[:, None], -torch.inf).amax(1)
        return cls.by_mask(own >= others, others - own, epoch, rule, 0.0)

    @property
    def num_removed(self) -> int:
        return len(self.keep) - int(self.keep.count_nonzero())

    @property
    def removed_fraction(self) -> float:
        return self.num_removed / len(self.keep)

    def tell_doubt(self) -> str | None:
        """Why not to trust it: without sentinels the only evidence is how much it removes."""
        too_many = self.removed_fraction > SUSPICIOUS_SHARE
        return f"{TOO_MANY}; train longer" if too_many else None

    def __str__(self) -> str:
        look = "looks" if self.num_removed == 1 else "look"
        return (
            f"epoch {self.epoch}: {self.num_removed:,} of {len(self.keep):,} examples {look}"
            f" mislabelled ({100 * self.removed_fraction:.1f} %): {self.rule}"
        )

    __repr__ = __str__
