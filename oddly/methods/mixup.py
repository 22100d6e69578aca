"""mixup (Zhang, Cisse, Dauphin, Lopez-Paz 2018): train on mixtures of examples; and CutMix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
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
    cut: bool = False
    """CutMix (Yun et al. 2019): paste a rectangle of the other image instead of blending both."""
    smoothing: float = 0.0
    """This share of every label is spread evenly over all classes."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"smoothing": (0, 1)}

    def __post_init__(self) -> None:
        if self.alpha < 0:
            raise InputError(f"mixup's alpha must be at least 0, got {self.alpha:g}")

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        share = self._draw_share()
        partner = torch.randperm(len(batch.labels)).to(batch.labels.device, non_blocking=True)
        if self.cut:
            inputs, share = paste(batch.inputs, batch.inputs[partner], share)
        else:
            inputs = torch.lerp(batch.inputs[partner], batch.inputs, share)
        logits = model(inputs)
        own, other = (
            F.cross_entropy(logits, labels, label_smoothing=self.smoothing)
            for labels in (batch.labels, batch.labels[partner])
        )
        return StepOutput(share * own + (1 - share) * other)

    def _draw_share(self) -> float:
        if self.alpha == 0:
            return 1.0
        # Drawn on the CPU from the run's seeded stream: no device sync, and it resumes exactly.
        alpha = torch.tensor(float(self.alpha))
        return float(torch.distributions.Beta(alpha, alpha).sample())


def paste(images: Tensor, others: Tensor, share: float) -> tuple[Tensor, float]:
    """Paste a rectangle of the others into the images; also returns the share of the images left.

    The rectangle has the images' aspect ratio and is centred on any pixel. What lies outside is
    cut off, so the share left can be larger than `share`.
    """
    height, width = images.shape[2:]
    side = (1 - share) ** 0.5
    top, bottom = _span(height, side)
    left, right = _span(width, side)
    mixed = images.clone(memory_format=torch.preserve_format)
    mixed[:, :, top:bottom, left:right] = others[:, :, top:bottom, left:right]
    return mixed, 1 - (bottom - top) * (right - left) / (height * width)


def _span(length: int, side: float) -> tuple[int, int]:
    """Start and end of a span of `side` x `length` around a random pixel."""
    centre, half = int(torch.randint(length, ())), round(length * side) // 2
    return max(centre - half, 0), min(centre + half, length)
