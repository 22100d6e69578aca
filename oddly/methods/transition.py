"""Estimates of the noise matrix T (K, K), T_ij = P(given label = j | true label = i)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

PERCENTILE = 97.0  # anchors are sought below it: the most confident examples may be outliers
# Leaving out the top 3 % of all examples is 30 % of a class's share with 10 classes, but all of it
# with 100. So with more classes than 10, the percentile is higher.
OUTLIERS = 30.0


def from_anchors(probabilities: Tensor, percentile: float | None = None) -> Tensor:
    """Patrini's estimate: row i is the network's prediction for the example most like class i.

    Values from the percentile on are left out (100: none; the authors: 97, and 100 with 100
    classes). This works on a copy, while the authors' code zeroes the matrix that it then reads.
    """
    scores = probabilities.clone()
    if percentile is None:
        percentile = max(PERCENTILE, 100 - OUTLIERS / scores.shape[1])
    if percentile < 100:
        # Sorted rather than torch.quantile, which refuses more than 16 million numbers.
        place = min(int(percentile / 100 * (len(scores) - 1)), len(scores) - 1)
        limits = scores.sort(0).values[place]
        scores[scores >= limits] = 0
    rows = probabilities[scores.argmax(0)]
    return F.normalize(rows, p=1, dim=1)


def from_labels(probabilities: Tensor, labels: Tensor) -> Tensor:
    """T_ij ∝ sum of p_i over the examples with given label j: all examples count, not K anchors."""
    classes = probabilities.shape[1]
    given = F.one_hot(labels, classes).to(probabilities.dtype)
    return F.normalize(probabilities.T @ given + 1e-6, p=1, dim=1)


def from_trusted(true_labels: Tensor, given_labels: Tensor, num_classes: int) -> Tensor:
    """Counted from trusted labels; one observation is spread over each row to avoid zeros."""
    counts = torch.full((num_classes, num_classes), 1 / num_classes, device=true_labels.device)
    ones = torch.ones(len(true_labels), device=true_labels.device)
    counts.index_put_((true_labels, given_labels), ones, accumulate=True)
    return F.normalize(counts, p=1, dim=1)


def posterior(probabilities: Tensor, transition: Tensor, labels: Tensor) -> Tensor:
    """(B, K): P(true = i | x, given y) ∝ p_i T_iy."""
    return F.normalize(probabilities * transition.T[labels], p=1, dim=1)
