"""MentorNet, its mentor taught by trusted labels (Jiang, Zhou, Leung, Li, Fei-Fei 2018)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.methods.base import Batch, Context, Stage, StepOutput
from oddly.methods.mentor import Mentor, plant_wrong, teach
from oddly.methods.mentornet import BURN_IN, MentorNet


@dataclass
class LearntMentorNet(MentorNet):
    """v = mentor(CE, CE - m, label, epoch), trained on v* = 1[the label is right] ("DD").

    In a first stage of plain training, the trusted examples join the batches with their given
    labels, each as often as any other example. Their losses train the mentor, which then weights
    the examples of a new network. After the burn-in, the mentor's epoch input stays at the end of
    the burn-in, as in the authors' code. Departures: the authors train it on a tenth of the data
    with known noise, in 30,000 steps of 32, and always pass class 0; the first stage is ours. If
    nearly all trusted labels are right, as in a list that a user trusts, random wrong ones are
    planted among them, because a mentor that has seen no wrong label cannot recognise one.
    """

    first_share: float = 0.25
    """Length of the first stage, as a share of the epochs."""
    least_wrong: float = 0.2
    """Share of the trusted examples with a wrong label; if there are fewer, some are planted."""
    steps: int = 500
    """Training steps of the mentor."""
    rate: float = 0.01
    """Learning rate of the mentor."""

    needs_trusted_labels: ClassVar[bool] = True
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"rate": (0, math.inf)}
    dropped: ClassVar[Sequence[tuple[float, float]]] = ((0.17, 0.5), (0.95, 0.05), (1.0, 0.9))
    state: ClassVar[Sequence[str]] = (*MentorNet.state, "mentor", "sightings")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.least_wrong <= 1 or not 0 < self.first_share <= 1:
            raise InputError("mentornet_dd's least_wrong and first_share must be within 0..1")

    def stages(self, epochs: int) -> Sequence[Stage]:
        first = max(1, round(self.first_share * epochs))
        # At a constant rate, much as early in the second stage, where the mentor is first used.
        watched = Stage("watched", first, schedule="constant", passes=1.1)
        return (watched, Stage("weighted", epochs, fresh=True))

    def setup(self, context: Context) -> None:
        super().setup(context)
        assert context.trusted is not None
        self.trusted, self.share = context.trusted, len(context.trusted) / context.num_examples
        self.generator = torch.Generator().manual_seed(context.seed)
        true, given = self.trusted.labels, self.trusted.given_labels
        self.shown = plant_wrong(true, given, self.least_wrong, context.num_classes, self.generator)
        torch.manual_seed(context.seed)
        self.mentor = Mentor(context.num_classes).to(context.device)
        epochs = context.stage.epochs
        # CE and CE - m of every trusted example in every epoch of the first stage.
        self.sightings = torch.full((epochs, len(true), 2), torch.nan, device=context.device)
        self.percents = [self.percent(e / (context.epochs - epochs)) for e in range(epochs)]

    def begin_epoch(self, context: Context) -> None:
        self.watching, self.epoch = context.stage.name == "watched", context.stage_epoch
        length = context.epochs - len(self.sightings)
        self.progress = context.stage_epoch / length

    def percent(self, progress: float) -> int:
        """The mentor's epoch input."""
        return int(100 * min(progress, BURN_IN))

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        if not self.watching:
            return super().loss(model, batch)
        own = len(batch.labels)
        trusted = self.trusted.draw(max(1, round(own * self.share)))
        logits = model(torch.cat([batch.inputs, trusted.inputs]))
        labels = torch.cat([batch.labels, self.shown[trusted.index]])
        losses = F.cross_entropy(logits, labels, reduction="none").float()
        weights = self.weigh(losses.detach(), labels)
        known = losses[own:].detach()
        pairs = torch.stack([known, known - self.moving], 1)
        self.sightings[self.epoch, trusted.index] = pairs
        return StepOutput((self.drop(weights) * losses).mean(), logits[:own])

    def end_stage(self, context: Context) -> None:
        if not self.watching:
            return
        seen = ~self.sightings[..., 0].isnan()  # (epochs, M)
        losses, above = self.sightings[seen].unbind(1)
        epoch, example = seen.nonzero(as_tuple=True)
        labels, right = self.shown[example], (self.shown == self.trusted.labels)[example]
        percents = torch.tensor(self.percents, device=context.device)[epoch]
        known = (losses, above, labels, percents, right)
        teach(self.mentor, *known, self.steps, self.rate, self.generator)

    @torch.no_grad()
    def advise(self, losses: Tensor, above: Tensor, labels: Tensor) -> Tensor:
        if self.watching:
            return torch.ones_like(losses)
        percent = torch.full_like(labels, min(self.percent(self.progress), self.percents[-1]))
        with torch.autocast(losses.device.type, enabled=False):
            weights: Tensor = self.mentor(losses, above, labels, percent).sigmoid()
        return weights
