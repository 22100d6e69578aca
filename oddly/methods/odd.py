"""On-the-fly data denoising (Song, Hu, Auli, Dauphin, Ma 2020), the method of this package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from oddly.core import Denoiser, Verdict, find_head
from oddly.core.copies import outvoted
from oddly.core.rule import usual_counterfactual
from oddly.errors import InputError
from oddly.methods.base import Batch, Context, Method, Stage, StepOutput
from oddly.methods.erm import ERM
from oddly.methods.mixup import Mixup

PAPER_RULE = {
    "counterfactual": "weights",
    "statistic": "last",
    "percentile": 10.0,
    "rounds": 1,
}
"""`--preset paper`: the loss of epoch E alone, against the 10th percentile of q_n."""


@dataclass
class ODD(Method):
    """Train with `before` until epoch E, drop what looks random, train with `after` (Algorithm 1).

    Differences from the paper (`PAPER_RULE` undoes all): the threshold comes from sentinels, a
    few labels that are replaced until E, not from the final layer's weights; margins averaged
    over epochs are compared, not the losses of one epoch; E is found by watching when the
    network begins to memorise the sentinels; and some removed examples are kept again later.
    """

    prune_after: int | None = None
    """Prune after epoch E; by default found from the sentinels (without: 3/8 of all epochs)."""
    percentile: float | None = None
    """p, the percentile of the counterfactual to use as threshold; higher removes less.
    Default: 10; with sentinels 6 to 15, chosen from the noise."""
    counterfactual: str | None = None
    """Where the threshold comes from: `sentinels` (default from 100 examples), `wrong_label`
    (default for fewer) or `weights` (the paper's)."""
    statistic: str | None = None
    """What to compare: an example's `last` value, or its `ema` over epochs (default)."""
    target_precision: float | None = None
    """Cut so that this share of the removed is expected to be wrong, instead of at a percentile."""
    draws: int = 20_000
    """Number of counterfactual losses to draw."""
    head: str | None = None
    """Dotted name of the final linear layer, if it is not found automatically."""
    strict: bool = False
    """Stop if a class would be emptied, instead of keeping it."""
    rounds: int = 3
    """Number of verdicts. The first prunes after E; the others, evenly spaced until the end, keep
    examples again whose label fits the network that no longer trains on them. 1: the paper's."""
    retrain: bool = False
    """At the end, train a new network for as many epochs on what was kept."""
    before: Method = field(default_factory=ERM)
    after: Method = field(default_factory=ERM)

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"percentile": (0, 100)}

    def stages(self, epochs: int) -> Sequence[Stage]:
        again = Stage("retraining", epochs, fresh=True)
        return (Stage("training", epochs), *[again] * self.retrain)

    def setup(self, context: Context) -> None:
        if self.rounds < 1:
            raise InputError(f"rounds must be at least 1, got {self.rounds}")
        usual = usual_counterfactual(context.num_examples, True, self.statistic)
        self.denoiser = Denoiser(
            context.num_examples,
            context.num_classes,
            epochs=context.stage.epochs or context.epochs,
            prune_after=self.prune_after,
            percentile=self.percentile,
            counterfactual=self.counterfactual or usual,
            statistic=self.statistic,
            target_precision=self.target_precision,
            draws=self.draws,
            head=self.head,
            seed=context.seed,
            strict=self.strict,
            sampler=context.sampler,
        )
        self.denoiser.warns = False  # the engine's loop reports the cautions
        if self.denoiser.rule.counterfactual == "weights":
            find_head(context.model, context.num_classes, self.head)  # fail now rather than at E
        self.given_labels = context.given_labels
        self.planted: Tensor | None = None
        self.before.setup(context)
        self.after.setup(context)

    @property
    def active(self) -> Method:
        return self.after if self.denoiser.verdict else self.before

    def begin_stage(self, context: Context) -> None:
        if self.denoiser.verdict:
            context.sampler.set_keep(self.denoiser.verdict.keep)
            self.leave_copies(context)

    def begin_epoch(self, context: Context) -> None:
        self.planted = None
        if self.denoiser.sentinels and self.denoiser.verdict is None:
            # For all examples at once, so that a step only has to look up its labels.
            index = torch.arange(len(self.given_labels), device=self.given_labels.device)
            self.planted = self.denoiser.plant(index, self.given_labels)
        self.active.begin_epoch(context)

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        if self.planted is not None:
            with self.denoiser.stopwatch(batch.labels.device):
                batch = replace(batch, labels=self.planted[batch.index])
        output = self.active.loss(model, batch)
        if output.logits is not None:
            self.denoiser.observe(batch.index, output.logits, batch.labels)
        return output

    def end_epoch(self, context: Context) -> None:
        self.active.end_epoch(context)
        judged = self.denoiser.end_epoch(context.model)
        if judged and context.decided is not None:
            self.spare(context.decided, context)
        if again := context.epoch in self.further_rounds(context):
            self.look_again(context)
        if judged or again:
            self.leave_copies(context)

    def spare(self, decided: Tensor, context: Context) -> None:
        """Keep the labels that a person confirmed, whatever their score."""
        assert self.denoiser.verdict
        keep = self.denoiser.verdict.keep | decided.cpu()
        self.denoiser.verdict = replace(self.denoiser.verdict, keep=keep)
        context.sampler.set_keep(keep)

    def leave_copies(self, context: Context) -> None:
        """Do not train on copies that lose: suggestions would lean towards their wrong label."""
        if context.pictures is None or self.denoiser.verdict is None:
            return
        before, classes = self.denoiser.verdict.keep, self.denoiser.verdict.labels.long() + 1
        decided = None if context.decided is None else context.decided.cpu()
        left = ~outvoted(context.pictures.cpu(), classes, before, decided)
        keep = before & left
        stay = torch.bincount(classes[keep], minlength=int(classes.max()) + 1)
        keep |= before & (stay == 0)[classes]  # but do not empty a class
        if 2 * int(keep.count_nonzero()) > int(before.count_nonzero()):  # else too few are left
            context.sampler.set_keep(keep)

    def further_rounds(self, context: Context) -> set[int]:
        """The epochs after which removed examples are looked at again."""
        if self.denoiser.verdict is None or context.stage_number:
            return set()
        first, last = self.denoiser.verdict.epoch, context.stage.epochs or context.epochs
        gaps = self.rounds - 1
        return {first + round(k * (last - first) / gaps) for k in range(1, self.rounds)} - {first}

    def look_again(self, context: Context) -> None:
        """Sweep over the removed examples; keep those again whose label the network agrees with."""
        assert self.denoiser.verdict
        removed = self.denoiser.verdict.removed
        if not len(removed):
            return
        with self.denoiser.stopwatch(context.device):
            found = context.probabilities(context.model, removed)
        # Log-probabilities differ from the logits only by a constant per example.
        self.denoiser.reconsider(removed, found.clamp(min=1e-12).log())

    @property
    def verdict(self) -> Verdict | None:
        return self.denoiser.verdict

    @property
    def extra_seconds(self) -> float:
        return self.denoiser.seconds

    def state_dict(self) -> dict[str, Any]:
        return {
            "denoiser": self.denoiser.state_dict(),
            "before": self.before.state_dict(),
            "after": self.after.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.denoiser.load_state_dict(state["denoiser"])
        self.before.load_state_dict(state["before"])
        self.after.load_state_dict(state["after"])


@dataclass
class ODDMixup(ODD):
    """The paper's ODD + mixup: the plain loss until E, then mixup on the kept examples."""

    alpha: float = 1.0
    """Beta parameter of mixup after E (the paper does not state its value)."""
    cut: bool = False
    """CutMix instead of mixup."""
    smoothing: float = 0.0
    """Label smoothing after E: share of each label to spread evenly over all classes."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {**ODD.ranges, **Mixup.ranges}

    def __post_init__(self) -> None:
        self.after = Mixup(self.alpha, self.cut, self.smoothing)
