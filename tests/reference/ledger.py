"""The loss statistics, one example and one epoch at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Observation = tuple[int, float]  # an example's index and its loss


def statistic(
    name: str, num_examples: int, epochs: Sequence[Sequence[Observation]], decay: float = 0.8
) -> np.ndarray:
    """`last`, `ema` or `mean` per example over epochs of observations; NaN where never seen."""
    return np.array([_one(name, example, epochs, decay) for example in range(num_examples)])


def _one(name: str, example: int, epochs: Sequence[Sequence[Observation]], decay: float) -> float:
    history = []
    for epoch in epochs:
        losses = [loss for index, loss in epoch if index == example]
        if losses:
            history.append(losses[-1])  # seen twice in an epoch: the last counts
    if not history:
        return float("nan")
    if name == "last":
        return history[-1]
    if name == "mean":
        return sum(history) / len(history)
    value = history[0]
    for loss in history[1:]:
        value = decay * value + (1 - decay) * loss
    return value
