"""Area under the margin (Pleiss, Zhang, Elenberg, Weinberger 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.methods.base import Batch, Context, Method, Stage, StepOutput
from oddly.methods.judgement import Judgement


@dataclass
class AUM(Method):
    """AUM_i = mean over epochs of z_y - max_{k≠y} z_k; low values are suspicious.

    Two runs at a constant rate, each with N / K examples moved to an extra class. In each run, an
    example whose AUM is below the 99th percentile of the moved ones is suspicious. Examples that
    every run that judged them suspects are removed; a third run trains on the rest. The first epoch
    is not counted.
    """

    percentile: float = 99.0
    """Of the moved examples' AUM: the threshold."""
    search_share: float = 0.5
    """Length of each of the two runs, as a share of the epochs (the authors: 150 of 300)."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {
        "percentile": (0, 100),
        "search_share": (0, 1),
    }
    state: ClassVar[Sequence[str]] = ("sums", "count", "scores", "searching", "moved", "judgement")

    def stages(self, epochs: int) -> Sequence[Stage]:
        length = max(1, round(self.search_share * epochs))
        first, second = (
            Stage(name, length, fresh=True, schedule="constant", extra_outputs=1)
            for name in ("search 1", "search 2")
        )
        return (first, second, Stage("kept", epochs, fresh=True))

    def setup(self, context: Context) -> None:
        examples, device = context.num_examples, context.device
        if examples < context.num_classes:
            raise InputError(
                f"aum needs at least one example per class, got {examples} examples of"
                f" {context.num_classes} classes"
            )
        self.classes = context.num_classes
        self.sums = torch.zeros(examples, device=device)
        self.count, self.searching = 0, False
        self.scores = torch.full((examples,), torch.inf, device=device)
        self.moved = torch.zeros(examples, dtype=torch.bool, device=device)

    def begin_stage(self, context: Context) -> None:
        self.searching = context.stage.name != "kept"
        self.counting = context.stage.epochs == 1
        if not self.searching:
            assert self.judgement is not None
            context.sampler.set_keep(self.judgement.keep)
            return
        generator = torch.Generator().manual_seed(context.seed)
        order = torch.randperm(context.num_examples, generator=generator)
        size = context.num_examples // context.num_classes
        chosen = order[context.stage_number * size :][:size].to(context.device)
        self.moved = torch.zeros_like(self.moved).index_fill(0, chosen, True)
        self.sums, self.count = torch.zeros_like(self.sums), 0

    def begin_epoch(self, context: Context) -> None:
        self.counting = context.stage_epoch > 0 or context.stage.epochs == 1

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        labels = batch.labels
        if self.searching:
            labels = torch.where(self.moved[batch.index], self.classes, labels)
            if self.counting:
                self.sums[batch.index] += margins(logits.detach().float(), labels)
        return StepOutput(F.cross_entropy(logits, labels), logits)

    def end_epoch(self, context: Context) -> None:
        self.count += self.counting

    def end_stage(self, context: Context) -> None:
        if not self.searching:
            return
        areas = self.sums / self.count
        own = areas[self.moved].sort().values
        threshold = own[round(self.percentile / 100 * (len(own) - 1))]
        # Suspected by every run that judged it: the smallest of the runs' scores decides.
        judged = torch.where(self.moved, torch.inf, threshold - areas)
        self.scores = torch.minimum(self.scores, judged)
        if context.stage.name == "search 2":
            rule = "AUM below that of examples moved to a class that does not exist"
            keep = self.scores <= 0
            self.judgement = Judgement.by_mask(keep, self.scores, context.epoch, rule, 0.0)


def margins(logits: Tensor, labels: Tensor) -> Tensor:
    """z_y - max_{k≠y} z_k of each example."""
    own = logits.gather(1, labels[:, None])
    return own.squeeze(1) - logits.scatter(1, labels[:, None], -torch.inf).amax(1)
