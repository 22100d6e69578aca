"""Which examples stay and which go, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from oddly.core.confusion import find_shifts, look_up, shift_
from oddly.core.counterfactual import Counterfactual
from oddly.core.cut import cut_by_sentinels, known_in_order
from oddly.core.learnt import LEARNT, contrast, contrast_needed, doubt_by_size, trust
from oddly.core.percentile import choose_percentile
from oddly.core.rule import PERCENTILES
from oddly.core.sentinels import Scored, check_observed
from oddly.errors import InputError

if TYPE_CHECKING:
    import pandas

FEWEST_EXAMPLES = 5  # a class smaller than this is too small to judge
EMPTY = torch.empty(0, dtype=torch.bool)
NEWS = 0.1  # how much a later look at a removed example weighs beside all epochs until E
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
    rivals: Tensor | None = None  # (N,) the class that speaks most against the label
    spared_classes: tuple[int, ...] = ()
    """Classes kept whole: too small to judge, or the threshold would have emptied them."""
    readmitted: int = 0
    """How many were removed at first and taken back (`readmit`)."""
    contrast: float | None = None
    """How far wrong and right labels lay apart (`learnt.contrast`); from sentinels only."""
    contrast_needed: float | None = None
    """From where on it is believed (`learnt.contrast_needed`)."""

    @property
    def hardly_learnt(self) -> bool:
        """Whether planted labels looked so much like others that the network cannot judge any."""
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
        return self.num_removed / len(self.keep)

    @property
    def num_removed(self) -> int:
        return len(self.keep) - int(self.keep.count_nonzero())  # sum() would widen the mask

    def readmit(self, index: Tensor, logits: Tensor) -> Verdict:
        """Weigh in what the network says of removed ones of `index` (M,) now; some come back.

        It has not trained on them since, so that is news: a tenth of how far the best other class
        of `logits` (M, K) lies above the label is added to the score. Those that fall below the
        threshold are kept again.
        """
        removed = ~self.keep[index.cpu()]
        index, logits = index.cpu()[removed], logits.cpu()[removed]
        given = self.labels[index].long()[:, None]
        rival = logits.scatter(1, given, -torch.inf).max(1).values
        margins = rival - logits.gather(1, given)[:, 0]
        keep, scores = self.keep.clone(), self.scores.clone()
        scores[index] += NEWS * margins.nan_to_num(0)  # a broken network has no news
        keep[index] = scores[index] < self.threshold
        back = int(keep.count_nonzero()) - int(self.keep.count_nonzero())
        return replace(self, keep=keep, scores=scores, readmitted=self.readmitted + back)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per example; `score` is larger for more suspicious ones."""
        import pandas as pd

        percentiles = self.counterfactual.percentile_of(self.scores)
        rivals = {} if self.rivals is None else {"rival_label": self.rivals.numpy()}
        return pd.DataFrame(
            {
                "index": range(len(self.keep)),
                "given_label": self.labels.numpy(),
                **rivals,
                "loss": self.losses.numpy(),
                "score": self.scores.numpy(),
                "counterfactual_percentile": percentiles.numpy(),
                "threshold": self.threshold,
                "keep": self.keep.numpy(),
            }
        )

    def __str__(self) -> str:
        doubt = self.tell_doubt()
        return self.tell_removed() + (f"\n{doubt}" if doubt else "")

    def __repr__(self) -> str:
        return self.tell_removed() + (", not to be trusted" if self.tell_doubt() else "")

    def tell_removed(self) -> str:
        return (
            f"epoch {self.epoch}: {self.num_removed:,} of {len(self.keep):,} examples removed"
            f" ({100 * self.removed_fraction:.1f} %), score ≥ {self.threshold:.3f}"
            f" (aim: percentile {self.percentile:g}, {self.counterfactual.source})"
        )

    def tell_doubt(self) -> str | None:
        """Why not to trust it, and what to do; None where there is no doubt, or nothing it hits."""
        if self.counterfactual.source != "sentinels":
            return doubt_by_size(len(self.keep), self.num_removed)
        if not self.hardly_learnt or not (self.num_removed or (self.contrast or 0) < LEARNT):
            return None
        go = "nothing is removed"
        if self.num_removed:  # more than a few, at times, and mostly right ones
            share = f"{100 * self.removed_fraction:.1f} %"
            go = f"many of the {self.num_removed:,} that go ({share}) may be right"
        return (
            "the network has hardly learnt, or has memorised already (contrast"
            f" {self.contrast:.2f}, {self.contrast_needed:.2f} is needed), so this verdict is not"
            f" to be trusted, and {go}: prune at another epoch, train longer or with a better"
            " network, or look before you remove anything"
        )

    def tell_readmitted(self) -> str:
        return f"{self.readmitted:,} examples readmitted so far, {self.num_removed:,} stay removed"

    def summary(self) -> dict[str, Any]:
        """In plain values, under the names that a run's summary.json has for them."""
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
        """Where the threshold came from, as a run's counterfactual.json has it."""
        found = {"percentile": self.percentile, "threshold": self.threshold, "epoch": self.epoch}
        return {**self.counterfactual.summary(), **found}

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values only, for a checkpoint."""
        return {**vars(self), "counterfactual": dict(vars(self.counterfactual))}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Verdict:
        state = {**state, "counterfactual": Counterfactual(**state["counterfactual"])}
        return cls(**state)


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
    if not len(counterfactual.losses):
        raise InputError("no example was observed, or the model's outputs are NaN")
    losses, labels = losses.cpu(), labels.cpu()
    verdict = Verdict(
        keep=EMPTY,
        scores=losses,
        losses=losses,
        labels=labels,
        threshold=counterfactual.threshold(percentile),
        percentile=percentile,
        epoch=epoch,
        counterfactual=counterfactual,
    )
    return _decide(verdict, num_classes, strict)


def judge_by_sentinels(
    examples: Scored,
    losses: Tensor,
    sentinels: Scored,
    percentile: float | None,
    epoch: int,
    num_classes: int,
    strict: bool = False,
    target_precision: float | None = None,
) -> Verdict:
    """The same by margins, against those of sentinels, with allowance for class and rival.

    The examples' scores are shifted in place. `percentile` None: what suits the noise.
    `target_precision` sets the cut where that share of the removed is expected to be wrong, and
    the percentile is then what came of it.
    """
    examples = Scored(*(column.cpu() for column in examples))
    ordered, planted = known_in_order(examples.scores), known_in_order(sentinels.scores)
    check_observed(ordered, sentinels.scores)
    learnt, needed = contrast(planted, ordered), contrast_needed(planted, ordered, num_classes)
    usual = PERCENTILES["sentinels"]  # for pairs in any case: what is named later is the cut alone
    counterfactual = _allow_for_pairs_(examples, sentinels, usual, num_classes)
    believed, named = trust(learnt, needed), percentile is not None
    if percentile is None and target_precision is not None:
        percentile = usual
    elif percentile is None:
        percentile = choose_percentile(examples, counterfactual, num_classes)
    threshold, noise_rate = cut_by_sentinels(
        examples.scores, counterfactual, percentile, num_classes, target_precision, believed, named
    )
    if target_precision is not None:
        percentile = float(counterfactual.percentile_of(torch.tensor([threshold])))
    verdict = Verdict(
        keep=EMPTY,
        scores=examples.scores,
        losses=losses.cpu(),
        labels=examples.labels,
        threshold=threshold,
        percentile=percentile,
        epoch=epoch,
        counterfactual=counterfactual,
        noise_rate=noise_rate,
        rivals=examples.rivals,
        contrast=learnt,
        contrast_needed=needed,
    )
    return _decide(verdict, num_classes, strict)


def _allow_for_pairs_(
    examples: Scored, sentinels: Scored, percentile: float, num_classes: int
) -> Counterfactual:
    """Shift all scores by label and rival: the examples' in place, the sentinels' as returned."""
    shifts = find_shifts(examples, sentinels, percentile, num_classes)
    shift_(examples, shifts)
    return Counterfactual.from_losses(sentinels.scores + look_up(shifts, sentinels), "sentinels")


def _decide(verdict: Verdict, num_classes: int, strict: bool) -> Verdict:
    """The verdict with its `keep` filled in, and the classes that were spared."""
    scores, labels, threshold = verdict.scores, verdict.labels, verdict.threshold
    if math.isnan(threshold):
        raise InputError("the counterfactual is NaN: the model's outputs are broken")
    remove = scores >= threshold  # False for NaN
    if bool(remove.any()) and not bool((scores < threshold).any()):
        raise InputError(
            f"the verdict would remove all {len(scores):,} examples: every score reaches the"
            f" threshold {threshold:.3f} (percentile {verdict.percentile:g}); train longer before"
            " pruning, raise the percentile, or look for a broken model"
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
    return replace(verdict, keep=remove.logical_not_(), spared_classes=tuple(spared.tolist()))


def _classes_to_spare(remove: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Classes that would lose an example though they are tiny, or would lose every example."""
    counts = torch.zeros(num_classes + 1, 2, dtype=torch.int64)  # row 0: label unknown (-1)
    for part, given in zip(remove.split(CHUNK), labels.split(CHUNK), strict=True):
        slot = (given.int() + 1) * 2 + part  # class, then kept or removed
        counts += torch.bincount(slot, minlength=counts.numel()).view_as(counts)
    kept, removed = counts[1:].unbind(1)
    tiny = kept + removed < FEWEST_EXAMPLES
    return ((removed > 0) & (tiny | (kept == 0))).nonzero().flatten()
