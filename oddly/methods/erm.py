"""Empirical risk minimisation: plain training, the yardstick for everything else."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn
from torch.nn import functional as F

from oddly.methods.base import Batch, Method, StepOutput


@dataclass
class ERM(Method):
    """L = mean_i CE(f(x_i), y_i), every given label taken at its word."""

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        return StepOutput(F.cross_entropy(logits, batch.labels), logits)
