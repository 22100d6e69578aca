"""Dropout before the last layer: the baseline of the paper's "LASS" row (Arpit et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn import functional as F

from oddly.core import find_head
from oddly.errors import InputError
from oddly.methods.base import Batch, Context, Method, StepOutput


@dataclass
class Dropout(Method):
    """ERM with dropout on the final layer's inputs: L = mean_i CE(fc(dropout(h_i)), y_i).

    LASS itself finds critical points and trains nothing: see `critical_sample_ratio`.
    """

    rate: float = 0.5
    """Share of the features set to 0 in training; those who reported it tried 0.2 to 0.9."""

    def __post_init__(self) -> None:
        if not 0 <= self.rate < 1:
            raise InputError(f"dropout's rate must be at least 0 and below 1, got {self.rate:g}")

    def setup(self, context: Context) -> None:
        find_head(context.model, context.num_classes).register_forward_pre_hook(self._drop)

    def _drop(self, head: nn.Module, inputs: Any) -> Any:
        return (F.dropout(inputs[0], self.rate, head.training), *inputs[1:])

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        return StepOutput(F.cross_entropy(logits, batch.labels), logits)
