"""MentorNet's predefined curriculum (Jiang, Zhou, Leung, Li, Fei-Fei 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.methods.base import Batch, Context, Method, StepOutput
from oddly.methods.judgement import Judgement

BURN_IN, LATE = 0.18, 0.90  # shares of training where the curriculum changes


@dataclass
class MentorNet(Method):
    """L = mean_i v_i CE_i, v_i from d_i = CE_i - m, m a moving percentile of the batch's losses.

    Up to 18 % of training v = 1; up to 90 % v = 1[d ≤ 0]; then v = clip(1 - d/γ, 0, 1). In each
    batch, some v are set to 0 at random. This is the rule that the paper's mentor learns ("PD"),
    without the mentor; `mentornet_dd` has one. Weight decay is not scaled by mean v. The judgement
    is ours: a mean v of at most ½ since the burn-in.
    """

    percentile: float = 70.0
    """Percentile of the losses, 0-100; examples above it lose their weight."""
    decay: float = 0.5
    """Decay of the moving percentile."""
    gamma: float = 1.0
    """How fast late weights fall with the loss."""

    dropped: ClassVar[Sequence[tuple[float, float]]] = ((0.17, 0.5), (1.0, 0.05))
    """Pairs: until this share of training, this share of a batch loses its weight at random."""
    state: ClassVar[Sequence[str]] = ("moving", "sums", "seen")

    def __post_init__(self) -> None:
        if not 0 < self.percentile <= 100:
            raise InputError(f"mentornet's percentile must be within 0..100, got {self.percentile}")

    def setup(self, context: Context) -> None:
        self.progress = 0.0
        self.moving = torch.zeros((), device=context.device)
        self.sums, self.seen = (
            torch.zeros(context.num_examples, device=context.device) for _ in range(2)
        )

    def begin_epoch(self, context: Context) -> None:
        self.progress = context.epoch / context.epochs

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        losses = F.cross_entropy(logits, batch.labels, reduction="none").float()
        weights = self.weigh(losses.detach(), batch.labels)
        if self.progress > BURN_IN:
            self.sums[batch.index] += weights
            self.seen[batch.index] += 1
        return StepOutput((self.drop(weights) * losses).mean(), logits)

    def weigh(self, losses: Tensor, labels: Tensor) -> Tensor:
        """v (B,) at this point of training; also updates the moving percentile."""
        present = torch.quantile(losses, self.percentile / 100)
        self.moving = torch.lerp(present, self.moving, self.decay)
        if self.progress <= BURN_IN:
            return torch.ones_like(losses)
        return self.advise(losses, losses - self.moving, labels)

    def advise(self, losses: Tensor, above: Tensor, labels: Tensor) -> Tensor:
        """v (B,) after the burn-in."""
        if self.progress < LATE:
            return (above <= 0).float()
        return (1 - above / self.gamma).clamp(0, 1)

    def drop(self, weights: Tensor) -> Tensor:
        """The weights with some of them set to 0 at random."""
        rate = next((rate for until, rate in self.dropped if self.progress < until), 0.0)
        kept = int(len(weights) * (1 - rate)) or len(weights)
        chosen = torch.randperm(len(weights))[:kept].to(weights.device, non_blocking=True)
        return torch.zeros_like(weights).index_copy(0, chosen, weights[chosen])

    def end_epoch(self, context: Context) -> None:
        if context.is_last:
            mean = torch.where(self.seen > 0, self.sums / self.seen.clamp_min(1), 1.0)
            self.judgement = Judgement.by_threshold(
                1 - mean, 0.5, context.epoch, "mean weight since the burn-in ≤ 0.5"
            )
