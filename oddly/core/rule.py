"""How to judge: the settings of a `Denoiser`, checked and filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral

from torch import Tensor

from oddly.core.indexed import IndexedDataset
from oddly.errors import InputError

PERCENTILES = {"sentinels": 6.0, "weights": 10.0, "wrong_label": 10.0}
"""The usual percentile for each kind of counterfactual."""
PAPER_SHARE = 75 / 200  # the paper prunes after epoch 75 of 200
SMALLEST = 100  # examples; with fewer, too few could be planted
STATE = {"epoch", "seconds", "ledger", "sampler", "sentinels", "wrong_labels", "verdict"}


def usual_counterfactual(num_examples: int, can_plant: bool, statistic: str | None = None) -> str:
    """The default: sentinels, if labels can be replaced and there are enough examples.

    From few examples, a network seldom learns enough for `weights`, which then often remove
    everything. `wrong_label` errs on the safe side (docs/constants.md, "Few examples"), but works
    only with the statistic `last`.
    """
    if not can_plant:
        return "weights"
    if num_examples >= SMALLEST:
        return "sentinels"
    return "wrong_label" if statistic in (None, "last") else "weights"


@dataclass(frozen=True)
class Rule:
    """How the threshold is found, and when."""

    counterfactual: str
    statistic: str
    percentile: float | None
    """None: chosen from the noise that the sentinels show."""
    epochs: int | None
    prune_after: int | None
    """E; None: the sentinels say when."""
    target_precision: float | None

    @classmethod
    def choose(
        cls,
        usual: str,
        counterfactual: str | None,
        statistic: str | None,
        percentile: float | None,
        epochs: int | None,
        prune_after: int | None,
        target_precision: float | None,
    ) -> Rule:
        """Fill in the settings that are None; `usual` is the default counterfactual."""
        if counterfactual is None:
            counterfactual = usual
        if counterfactual not in PERCENTILES:
            known = ", ".join(PERCENTILES)
            raise InputError(f"counterfactual must be one of {known}, got '{counterfactual}'")
        if statistic is None:
            statistic = "last" if counterfactual == "wrong_label" else "ema"
        if percentile is None and counterfactual != "sentinels":
            percentile = PERCENTILES[counterfactual]
        rule = cls(counterfactual, statistic, percentile, epochs, prune_after, target_precision)
        rule.check()
        if prune_after is None and epochs and counterfactual != "sentinels":
            return replace(rule, prune_after=max(1, round(PAPER_SHARE * epochs)))
        return rule

    def check(self) -> None:
        """Refuse values out of range and settings that do not fit together."""
        epochs, prune_after = self.epochs, self.prune_after
        for name, number in (("epochs", epochs), ("prune_after", prune_after)):
            if number is not None and not isinstance(number, Integral):
                raise InputError(f"{name} must be a whole number, got {number!r}")
        if self.percentile is not None and not 0 <= self.percentile <= 100:
            raise InputError(f"percentile must be within 0..100, got {self.percentile:g}")
        if prune_after is None and epochs is None:
            raise InputError("pass epochs=… so that E can be found, or prune_after=E")
        if epochs is not None and epochs < 1:
            raise InputError(f"epochs must be at least 1, got {epochs}")
        if prune_after is not None and prune_after < 1:
            raise InputError(f"prune_after must be at least 1 (finished epochs), got {prune_after}")
        if epochs is not None and prune_after is not None and prune_after > epochs:
            raise InputError(f"prune_after = {prune_after} is beyond the {epochs} epochs")
        if self.counterfactual == "wrong_label" and self.statistic != "last":
            raise InputError("counterfactual wrong_label only works with statistic last")
        precision = self.target_precision
        if precision is not None and self.counterfactual != "sentinels":
            raise InputError(
                "target_precision needs sentinels: use counterfactual=sentinels (the"
                f" default for {SMALLEST} or more examples)"
            )
        if precision is not None and self.percentile is not None:
            raise InputError("pass percentile or target_precision, not both: each sets the cut")
        if precision is not None and not 0 < precision < 1:
            raise InputError(f"target_precision must be between 0 and 1, got {precision:g}")


def check_setup(examples: object, num_classes: int, draws: int) -> None:
    """Refuse arguments from which no `Denoiser` can be made."""
    if not isinstance(examples, int | IndexedDataset):
        kind = type(examples).__name__
        raise InputError(f"Denoiser expects IndexedDataset(your {kind}) or a number of examples")
    if not isinstance(num_classes, Integral):  # for example a list of class names
        raise InputError(f"num_classes must be a number, got {type(num_classes).__name__}")
    if num_classes < 2:
        raise InputError(f"num_classes must be at least 2, got {num_classes}")
    if draws < 1:
        raise InputError(f"draws must be at least 1, got {draws}")


def check_state(state: Mapping[str, object], **counterfactuals: object) -> None:
    """Refuse a state that is not a `Denoiser`'s, or that has another counterfactual."""
    if not isinstance(state, Mapping) or not state.keys() >= STATE:
        raise InputError("not the state of a Denoiser: pass what its state_dict() returned")
    if any((state[name] is None) != (mine is None) for name, mine in counterfactuals.items()):
        raise InputError("the saved run used a different counterfactual")


def check_batch(index: Tensor, logits: Tensor, labels: Tensor, num_classes: int) -> None:
    """Refuse wrong shapes and, on a CPU, labels out of range (on a GPU, looking would stall)."""
    for name, value in (("index", index), ("logits", logits), ("labels", labels)):
        if not isinstance(value, Tensor):
            raise InputError(
                f"observe(index, logits, labels): {name} must be a tensor, got"
                f" {type(value).__name__}"
            )
    if logits.dim() != 2 or logits.shape[1] != num_classes:
        raise InputError(
            f"logits must be (batch, {num_classes}), a column per class, got {tuple(logits.shape)}"
        )
    if not index.shape == labels.shape == logits.shape[:1]:
        raise InputError(
            "index and labels must have one number per example:"
            f" got {tuple(index.shape)} and {tuple(labels.shape)} for {len(logits)} rows of logits"
            " (does your collate_fn leave out, repeat or mix examples?)"
        )
    if labels.is_floating_point():
        kind = str(labels.dtype).removeprefix("torch.")
        raise InputError(f"labels must be class numbers as int64, got {kind}")
    if labels.device.type != "cpu" or not labels.numel():
        return
    low, high = (bound.item() for bound in labels.aminmax())
    if low < 0 or high >= num_classes:
        raise InputError(f"label {low if low < 0 else high} is outside 0..{num_classes - 1}")
