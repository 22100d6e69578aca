from __future__ import annotations

import numpy as np
import pytest
import torch

from oddly.experiments.snapshot import EDGES, histogram_distance, histograms, ks_distance, quantiles


def slow_ks(a: list[float], b: list[float]) -> float:
    """Largest gap between the two step functions, point by point."""
    points = sorted({*a, *b})
    shares = [[sum(v <= x for v in values) / len(values) for x in points] for values in (a, b)]
    return max(abs(p - q) for p, q in zip(*shares, strict=True))


def test_ks_distance_against_the_slow_one() -> None:
    random = np.random.RandomState(0)
    for _ in range(5):
        a, b = random.normal(size=17).round(1), random.normal(0.5, 2, 23).round(1)
        expected = slow_ks(a.tolist(), b.tolist())
        assert ks_distance(torch.tensor(a), torch.tensor(b)) == pytest.approx(expected, abs=1e-6)


def test_ks_distance_by_hand() -> None:
    assert ks_distance(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])) == 1
    assert ks_distance(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0, torch.nan])) == 0
    assert ks_distance(torch.tensor([1.0]), torch.tensor([])) is None


def test_histograms_share_their_bins_and_lose_nothing() -> None:
    counts = histograms({"a": torch.tensor([0.05, 0.05, 3.0, 99.0, torch.nan])})["a"]
    assert sum(counts) == 4 and counts[0] == 2 and counts[-1] == 1 and len(counts) == len(EDGES) - 1
    assert histogram_distance([1, 1, 0], [0, 1, 1]) == 0.5
    assert histogram_distance([2, 0], [7, 0]) == 0


def test_quantiles() -> None:
    assert quantiles(torch.arange(101.0)) == [5, 25, 50, 75, 95]
    assert quantiles(torch.tensor([torch.nan])) is None
