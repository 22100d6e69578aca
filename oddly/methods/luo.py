"""A penalty on the variance under augmentation (Luo, Zhu, Pfister 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.methods.base import Batch, Context, Method, StepOutput


@dataclass
class Luo(Method):
    """L = mean_i CE(f(x_i), y_i) + λ mean_i ½ ‖p(x_i) - p(x_i')‖², x and x' two augmentations.

    The second term is an unbiased estimate of the output's variance, to first order a penalty on
    the norm of the Jacobian; it uses no label. We do not have the paper's settings and code, so λ
    and its rise are ours. λ rises late, when memorising begins; early on, it only slows learning.
    Cross-entropy is averaged over both views.
    """

    penalty: float = 100.0
    """λ after its rise; tune it (docs/compare.md says how the default was chosen)."""
    ramp: float = 0.7
    """Share of the epochs over which λ rises from near 0, as exp(-5 (1 - t)²)."""

    views: ClassVar[int] = 2
    passes: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        if self.penalty < 0 or not 0 <= self.ramp <= 1:
            raise InputError("luo's penalty must be at least 0 and its ramp within 0..1")

    def setup(self, context: Context) -> None:
        self.begin_epoch(context)

    def begin_epoch(self, context: Context) -> None:
        done = context.epoch / (self.ramp * context.epochs) if self.ramp else 1.0
        self.present_penalty = self.penalty * math.exp(-5 * (1 - min(done, 1.0)) ** 2)

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(torch.cat([batch.inputs, *batch.views])).float()  # one pass of 2B
        first, second = logits.chunk(2)
        variance = (first.softmax(1) - second.softmax(1)).square().sum(1).mean() / 2
        loss = F.cross_entropy(logits, batch.labels.repeat(2))
        return StepOutput(loss + self.present_penalty * variance, first)
