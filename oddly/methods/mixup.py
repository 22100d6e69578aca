"""mixup (Zhang, Cisse, Dauphin, Lopez-Paz 2018): train on convex mixtures of examples."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.methods.base import Batch, Method, StepOutput


@dataclass
class Mixup(Method):
    """x̃ = λx + (1-λ)x_π,  L = λ CE(f(x̃), y) + (1-λ) CE(f(x̃), y_π),  λ ~ Beta(α, α) per batch.

    The logits belong to mixtures, so the output carries none: a mixed loss says nothing about
    one example's label.
    """

    alpha: float = 1.0
    """Both parameters of the Beta distribution; larger mixes more, 0 not at all."""

    def __post_init__(self) -> None:
        if self.alpha < 0:
            raise InputError(f"mixup's alpha must not be negative, it is {self.alpha:g}")

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        share = self._draw_share()
        partner = torch.randperm(len(batch.labels)).to(batch.labels.device, non_blocking=True)
        logits = model(torch.lerp(batch.inputs[partner], batch.inputs, share))
        loss = share * F.cross_entropy(logits, batch.labels)
        return StepOutput(loss + (1 - share) * F.cross_entropy(logits, batch.labels[partner]))

    def _draw_share(self) -> float:
        if self.alpha == 0:
            return 1.0
        # Drawn on the CPU from the run's seeded stream: no device sync, and it resumes exactly.
        alpha = torch.tensor(float(self.alpha))
        return float(torch.distributions.Beta(alpha, alpha).sample())
