"""A verdict: which examples to keep and which to remove, and what to say about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from oddly.core.counterfactual import Counterfactual
from oddly.core.sentinels.called import tell_called
from oddly.core.sentinels.learnt import LEARNT, doubt_by_size
from oddly.core.sentinels.one_way import tell_one_way
from oddly.errors import count

if TYPE_CHECKING:
    import pandas

FEWEST_EXAMPLES = 5  # a class smaller than this is too small to judge
FEW = 0.05  # if at most this share is in classes that would be emptied, the rest is trusted
NEWS = 0.1  # weight of a later look at a removed example, relative to all epochs until E


@dataclass(frozen=True, repr=False)  # the default repr would print five tensors of N numbers
class Verdict:
    """The outcome of one pruning; tensors are on the CPU."""

    keep: Tensor  # (N,) bool, True stays
    scores: Tensor  # (N,) larger = more suspicious; NaN where an example was never seen
    losses: Tensor  # (N,) cross-entropy of the given label
    labels: Tensor  # (N,) given labels as observed; -1 where never seen
    threshold: float
    """Examples with this score or more are removed."""
    percentile: float
    epoch: int
    """Number of finished epochs when it was made (the paper's E)."""
    counterfactual: Counterfactual
    """The scores of examples with random labels."""
    noise_rate: tuple[float, float, float] | None = None
    """Estimated share of wrong labels, lower bound, upper bound; from sentinels only."""
    rivals: Tensor | None = None  # (N,) the class that speaks most against the label
    spared_classes: tuple[int, ...] = ()
    """Classes kept whole: too small to judge, or they would have been emptied."""
    target_precision: float | None = None
    """The share of the removed that should be wrong, if one was asked for."""
    one_way: tuple[tuple[int, int], ...] = ()
    """Pairs of label and rival that are systematically confused (`one_way.find_one_way`)."""
    called: tuple[tuple[int, int], ...] = ()
    """The same if only some classes are affected (`called.find_called`)."""
    readmitted: int = 0
    """Number of examples first removed and then kept again (`readmit`)."""
    contrast: float | None = None
    """How well wrong and right labels are separated (`learnt.contrast`); from sentinels only."""
    contrast_needed: float | None = None
    """The contrast needed to trust the verdict (`learnt.contrast_needed`)."""

    @property
    def hardly_learnt(self) -> bool:
        """Whether planted labels looked so much like others that the verdict is unreliable."""
        if self.contrast is None or self.contrast_needed is None:
            return False
        return self.contrast < self.contrast_needed

    @property
    def removed(self) -> Tensor:
        """Indices of the removed examples, most suspicious first."""
        indices = (~self.keep).nonzero().flatten()
        return indices[self.scores[indices].argsort(descending=True)]

    @property
    def removed_fraction(self) -> float:
        """Share of removed examples, 0..1."""
        return self.num_removed / len(self.keep)

    @property
    def num_removed(self) -> int:
        """Number of removed examples."""
        return len(self.keep) - int(self.keep.count_nonzero())  # sum() would widen the mask

    @property
    def num_spared(self) -> int:
        """Examples as suspicious as the removed ones, in classes that would have been emptied.

        Classes too small to judge do not count.
        """
        if not self.spared_classes:
            return 0
        spared = torch.tensor(self.spared_classes, dtype=self.labels.dtype)
        members = torch.isin(self.labels, spared)
        labels = self.labels[members].long()
        judged = torch.bincount(labels)[labels] >= FEWEST_EXAMPLES
        return int((judged & (self.scores[members] >= self.threshold)).count_nonzero())

    @property
    def _num_condemned(self) -> int:
        """Examples that the threshold removes, including those that a person keeps."""
        spared = torch.tensor(self.spared_classes, dtype=self.labels.dtype)
        others = ~torch.isin(self.labels, spared)
        return int((others & (self.scores >= self.threshold)).count_nonzero())

    @property
    def percentiles(self) -> Tensor:
        """The percentage of the counterfactual that lies below each score (N,).

        NaN if never seen, and for systematically confused pairs: their scores were raised, so
        they say nothing about random labels.
        """
        found = self.counterfactual.percentile_of(self.scores)
        if (ruled := self.one_way or self.called) and self.rivals is not None:
            number = torch.tensor([2**31, 1])  # numbers the pairs: label · 2³¹ + rival
            pairs = torch.stack([self.labels, self.rivals], 1).long() @ number
            found[torch.isin(pairs, torch.tensor(ruled) @ number)] = torch.nan
        return found

    def readmit(self, index: Tensor, logits: Tensor) -> Verdict:
        """Update with what the network now says about `index` (M,); some are kept again.

        It has not trained on removed examples since, so that is new evidence: a tenth of how far
        the best other class in `logits` (M, K) lies above the label is added to the score. Examples
        that fall below the threshold are kept again.
        """
        removed = ~self.keep[index.cpu()]
        index, logits = index.cpu()[removed], logits.cpu()[removed]
        given = self.labels[index].long()[:, None]
        rival = logits.scatter(1, given, -torch.inf).max(1).values
        margins = rival - logits.gather(1, given)[:, 0]
        keep, scores = self.keep.clone(), self.scores.clone()
        scores[index] += NEWS * margins.nan_to_num(0)  # NaN says nothing new
        keep[index] = scores[index] < self.threshold
        back = int(keep.count_nonzero()) - int(self.keep.count_nonzero())
        return replace(self, keep=keep, scores=scores, readmitted=self.readmitted + back)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per example; a higher `score` is more suspicious."""
        import pandas as pd

        rivals = {} if self.rivals is None else {"rival_label": self.rivals.numpy()}
        return pd.DataFrame(
            {
                "index": range(len(self.keep)),
                "given_label": self.labels.numpy(),
                **rivals,
                "loss": self.losses.numpy(),
                "score": self.scores.numpy(),
                "counterfactual_percentile": self.percentiles.numpy(),
                "threshold": self.threshold,
                "keep": self.keep.numpy(),
            }
        )

    def __str__(self) -> str:
        return "\n".join([self.tell_removed(), *self.cautions()])

    def __repr__(self) -> str:
        return self.tell_removed() + (", unreliable" if self.tell_doubt() else "")

    def tell_removed(self) -> str:
        """The verdict in one line."""
        return (
            f"epoch {self.epoch}: {self.num_removed:,} of {len(self.keep):,} examples removed"
            f" ({100 * self.removed_fraction:.1f} %), score ≥ {self.threshold:.3f}"
            f" (target percentile {self.percentile:g}, {self.counterfactual.source})"
        )

    def cautions(self, class_names: Sequence[str] | None = None) -> list[str]:
        """Warnings about the verdict, one sentence each."""
        doubt = self.tell_doubt() or self.tell_out_of_reach()
        return [told for told in (self.tell_by_rule(class_names), doubt) if told]

    def tell_by_rule(self, class_names: Sequence[str] | None = None) -> str | None:
        """Which labels are systematically wrong, with class names or numbers; None if none."""
        pairs = self.one_way or self.called
        names = class_names or range(1 + max(map(max, pairs), default=-1))
        named = [(names[label], names[rival]) for label, rival in pairs]
        return tell_one_way(named) if self.one_way else tell_called(named)

    def tell_doubt(self) -> str | None:
        """Why not to trust the verdict and what to do; None if there is no such reason."""
        if self.one_way:
            return None  # the network has learnt the rule, so right and wrong labels score alike
        if self.hardly_learnt and (self.num_removed or (self.contrast or 0) < LEARNT):
            return self._tell_hardly_learnt()
        if self.num_spared > max(self._num_condemned + self.readmitted, FEW * len(self.keep)):
            return (
                f"{self.num_spared:,} more labels look as wrong as the {self.num_removed:,}"
                " removed, and are kept only because their classes would be almost emptied: the"
                " network has learnt too little about these, so do not trust this verdict; train"
                " longer, or with a network that suits the images"
            )
        if self.counterfactual.source != "sentinels":
            return doubt_by_size(len(self.keep), self.num_removed)
        return None

    def _tell_hardly_learnt(self) -> str:
        go, advice = "nothing is removed", ""
        if self.num_removed:  # sometimes many, and then mostly right labels
            share = f"{100 * self.removed_fraction:.1f} %"
            go = f"many of the {self.num_removed:,} removed ({share}) may be right"
            advice = "look before you remove anything, "
        found = max(self.contrast or 0.0, 0.0)  # with a handful of sentinels it may be negative
        return (
            f"the network has hardly learnt, or has already memorised (contrast {found:.2f},"
            f" {self.contrast_needed:.2f} needed), so do not trust this verdict:"
            f" {go}; {advice}prune at another epoch, train longer, or with a network that suits"
            " the images"
        )

    def tell_out_of_reach(self) -> str | None:
        """That nothing is removed because `target_precision` is out of reach, if so."""
        if self.target_precision is None or self.readmitted or self.spared_classes:
            return None
        if self.num_removed or bool((self.scores >= self.threshold).any()):
            return None  # a person keeps what the threshold would remove
        return (
            f"nothing is removed: no cut is expected to reach a precision of"
            f" {100 * self.target_precision:g} %; lower target_precision, or leave it out"
        )

    def tell_readmitted(self) -> str:
        back = count(self.readmitted, "example")
        return f"{back} readmitted so far, {self.num_removed:,} still removed"

    def summary(self) -> dict[str, Any]:
        """Plain values with the names they have in a run's summary.json."""
        rates = self.noise_rate
        return {
            "threshold": self.threshold,
            "prune_after": self.epoch,
            "percentile": self.percentile,
            "counterfactual": self.counterfactual.source,
            "readmitted": self.readmitted,
            "estimated_noise": rates and dict(zip(("rate", "low", "high"), rates, strict=True)),
            "contrast": self.contrast,
            "doubt": self.tell_doubt(),
        }

    def origin(self) -> dict[str, Any]:
        """Where the threshold came from, as in a run's counterfactual.json."""
        found = {"percentile": self.percentile, "threshold": self.threshold, "epoch": self.epoch}
        return {**self.counterfactual.summary(), **found}

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values only, for a checkpoint."""
        return {**vars(self), "counterfactual": dict(vars(self.counterfactual))}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Verdict:
        state = {**state, "counterfactual": Counterfactual(**state["counterfactual"])}
        return cls(**state)
