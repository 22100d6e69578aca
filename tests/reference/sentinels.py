"""Sentinels one example at a time: whose label is replaced by what, the margins and the rivals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor


def plant(
    shifts: Mapping[int, int], index: Sequence[int], labels: Sequence[int], num_classes: int
) -> list[int]:
    """The labels to train with: only those of sentinels, the keys of `shifts`, are moved."""
    return [
        (label + shifts[i]) % num_classes if i in shifts else label
        for i, label in zip(index, labels, strict=True)
    ]


def given_margin(logits: np.ndarray, given: int, planted: int) -> tuple[float, int]:
    """How far the best rival lies above the given label, and which class that is.

    A planted label is no rival, unless there are but two classes.
    """
    excluded = {given} if len(logits) == 2 else {given, planted}
    return _margin(logits, given, excluded)


def planted_margin(logits: np.ndarray, planted: int) -> tuple[float, int]:
    """The same for the planted label; its given label is a rival too."""
    return _margin(logits, planted, {planted})


def _margin(logits: np.ndarray, label: int, excluded: set[int]) -> tuple[float, int]:
    rivals = [(float(x), k) for k, x in enumerate(logits) if k not in excluded]
    best, rival = max(rivals)
    return best - float(logits[label]), rival


def separation(planted: Sequence[float], scores: Sequence[float]) -> float:
    """Sentinels' mean above the examples' lower quartile (an element), in joint deviations."""
    planted = [x for x in planted if math.isfinite(x)]
    scores = [x for x in scores if math.isfinite(x)]
    if not planted or not scores:
        return 0.0
    quartile = sorted(scores)[(len(scores) - 1) // 4]
    spread = math.sqrt((np.var(planted) + np.var(scores)) / 2)
    return (float(np.mean(planted)) - quartile) / max(spread, 1e-12)


def contrast(planted: Sequence[float], scores: Sequence[float]) -> float:
    """The sentinels' upper half above the lowest tenth of the examples, in their deviations."""
    high = sorted(x for x in planted if math.isfinite(x))
    low = sorted(x for x in scores if math.isfinite(x))
    high, low = high[len(high) // 2 :], low[: max(1, round(len(low) / 10))]
    spread = math.sqrt((np.var(high) + np.var(low)) / 2)
    return float(np.mean(high) - np.mean(low)) / max(spread, 1e-12)


def weigh(separated: float) -> float:
    """How much an epoch of this separation counts."""
    return max(separated, 0.001) ** 8


def draw_scores(seed: int) -> tuple[Tensor, Tensor]:
    """Scores of some sentinels and more examples, a few of them unknown, for twins to compare."""
    generator = torch.Generator().manual_seed(seed)
    planted = 2 + torch.randn(30 + seed, generator=generator)
    scores = 3 * torch.randn(200 + seed, generator=generator)
    scores[::7], planted[0] = math.nan, math.inf
    return planted, scores
