"""The loss statistics, one example and one epoch at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Observation = tuple[int, float]  # an example's index and its loss


def statistic(
    name: str,
    num_examples: int,
    epochs: Sequence[Sequence[Observation]],
    weights: Sequence[float] | None = None,
    decay: float = 0.9,
) -> np.ndarray:
    """`last` or `ema` per example over epochs of observations; NaN where never seen."""
    weights = [1.0] * len(epochs) if weights is None else weights
    histories = [_history(example, epochs) for example in range(num_examples)]
    return np.array([_one(name, history, weights, decay) for history in histories])


def _history(example: int, epochs: Sequence[Sequence[Observation]]) -> list[float | None]:
    """An example's loss in each epoch, None where it was not seen."""
    history: list[float | None] = []
    for epoch in epochs:
        losses = [loss for index, loss in epoch if index == example]
        history.append(losses[-1] if losses else None)  # seen twice in an epoch: the last counts
    return history


def _one(
    name: str, history: Sequence[float | None], weights: Sequence[float], decay: float
) -> float:
    seen = [loss for loss in history if loss is not None]
    if not seen:
        return float("nan")
    if name == "last":
        return seen[-1]
    return fading_mean(history, weights, decay)


def fading_mean(history: Sequence[float | None], weights: Sequence[float], decay: float) -> float:
    """Σ w_e d^(now - e) l_e over Σ w_e d^(now - e), from scratch for every epoch.

    An epoch that missed the example counts as if it had found the mean so far, and those before
    the first as if they had found the first.
    """
    filled: list[float] = []
    for loss in history:
        if loss is None:
            loss = _faded(filled, weights, decay) if filled else None
        elif not filled:
            filled = [loss] * history.index(loss)
        if loss is not None:
            filled.append(loss)
    return _faded(filled, weights, decay)


def _faded(losses: Sequence[float], weights: Sequence[float], decay: float) -> float:
    now = len(losses) - 1
    shares = [weights[e] * decay ** (now - e) for e in range(len(losses))]
    return sum(s * loss for s, loss in zip(shares, losses, strict=True)) / sum(shares)
