"""Scores drawn at random, whose wrong labels are known."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from oddly.core import Counterfactual
from oddly.core.sentinels.cut import cut_by_sentinels


class Drawn(NamedTuple):
    """A drawn mixture, and the cut that was found for it."""

    scores: Tensor  # (N,)
    sentinels: Counterfactual
    wrong: Tensor  # (N,)
    threshold: float
    noise_rate: tuple[float, float, float]

    @property
    def flagged(self) -> Tensor:
        return self.scores >= self.threshold

    @property
    def precision(self) -> float:
        return float(self.wrong[self.flagged].float().mean())

    @property
    def recall(self) -> float:
        return float(self.flagged[self.wrong].float().mean())

    @property
    def f1(self) -> float:
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def draw_mixture(
    noise: float,
    num_classes: int,
    percentile: float = 6.0,
    apart: float = 6.0,
    target_precision: float | None = None,
    examples: int = 40_000,
    seed: int = 0,
    trust: float = 1.0,
) -> Drawn:
    """Examples and a tenth as many sentinels, margins -3 ± 1 if right, `apart` more if wrong.

    Of the sentinels on wrong labels one in K - 1 hit the true one: they score like right ones.
    """
    generator = torch.Generator().manual_seed(seed)

    def draw(wrong: Tensor) -> Tensor:
        return apart * wrong - 3 + torch.randn(len(wrong), generator=generator)

    wrong = torch.rand(examples, generator=generator) < noise
    hit = torch.rand(examples // 10, generator=generator) < noise / (num_classes - 1)
    scores, sentinels = draw(wrong), Counterfactual.from_losses(draw(~hit), "sentinels")
    found = cut_by_sentinels(scores, sentinels, percentile, num_classes, target_precision, trust)
    return Drawn(scores, sentinels, wrong, *found)
