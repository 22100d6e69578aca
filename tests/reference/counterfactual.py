"""The paper's q_n, one draw at a time, as its text says it."""

from __future__ import annotations

import math

import numpy as np


def draw_loss(weight: np.ndarray, bias: np.ndarray | None, x: np.ndarray, k: int) -> float:
    """l = -y_k + log Σ_i exp(y_i) with y = fc(relu(x))."""
    num_classes = weight.shape[0]
    features = [max(0.0, float(value)) for value in x]
    logits = []
    for row in range(num_classes):
        logit = 0.0 if bias is None else float(bias[row])
        logit += sum(float(w) * h for w, h in zip(weight[row], features, strict=True))
        logits.append(logit)
    top = max(logits)
    return -logits[k] + top + math.log(sum(math.exp(logit - top) for logit in logits))


def draw_losses(
    weight: np.ndarray, bias: np.ndarray | None, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """S losses of uniformly random labels."""
    num_classes, features = weight.shape
    losses = []
    for _ in range(draws):
        x = rng.standard_normal((features,))
        losses.append(draw_loss(weight, bias, x, int(rng.integers(num_classes))))
    return np.array(losses)
