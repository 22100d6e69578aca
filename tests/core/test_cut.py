"""Where to cut, by hand; `test_cut_mixtures.py` has drawn mixtures."""

from __future__ import annotations

import math

import pytest
import torch

from oddly.core import cut as module
from oddly.core.cut import (
    Mixture,
    correct_percentile,
    estimate_mixture,
    lower_into_gap,
)
from tests.core.mixtures import draw_mixture

MANY = 10**9  # classes; so many that no planted label is right by accident


@pytest.mark.parametrize(
    ("percentile", "noise_rate", "num_classes", "expected"),
    [
        (6.0, 0.0, 10, 6.0),  # no noise, no accidental hits
        (6.0, 0.45, 10, 5 + 0.06 * 95),  # 45 % / 9: one in twenty got its true label
        (10.0, 0.3, 2, 30 + 0.1 * 70),  # with two classes each sentinel on a wrong label did
        (50.0, 0.5, 3, 25 + 0.5 * 75),
        (100.0, 0.4, 5, 100.0),
        (0.0, 0.4, 5, 10.0),
        (6.0, 1.0, 2, 90 + 0.06 * 10),  # held at 0.9: some must remain
    ],
)
def test_percentile_corrected_by_hand(
    percentile: float, noise_rate: float, num_classes: int, expected: float
) -> None:
    found = correct_percentile(percentile, noise_rate, num_classes)
    assert found == pytest.approx(expected)


def test_best_cut_by_hand() -> None:
    """Ten examples, the last four wrong; above the sentinels' median, 5.2, are two: η = 0.4."""
    ordered = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 5.0, 5.1, 6.5, 7.0])
    sentinels = torch.tensor([4.0, 4.2, 4.4, 5.1, 5.2, 6.0, 6.2, 6.4, 6.6, 9.0])
    mixture = estimate_mixture(ordered, sentinels, MANY)
    best = mixture.best_cut()
    assert best.threshold == best.lowest == 4.0  # recall 1, four of four flagged
    assert best.f1 == pytest.approx(1.0)
    assert mixture.rate == pytest.approx(0.4)


def test_best_cut_avoids_the_right_ones() -> None:
    """The lowest sentinel lies among the right labels: there six more would go for one found."""
    ordered = torch.tensor([0.0] * 10 + [1.0] * 6 + [4.15, 4.25, 4.6, 4.75])
    sentinels = torch.tensor([0.5, 4.0, 4.1, 4.2, 4.3, 4.4, 4.5, 4.6, 4.7, 4.8])
    mixture = estimate_mixture(ordered, sentinels, MANY)
    best = mixture.best_cut()
    assert 1.0 < best.lowest <= best.threshold <= 4.0
    assert best.f1 == pytest.approx(2 * 0.2 * 0.9 / (0.2 + 0.2))  # all four go, 0.9 are found
    assert mixture.rate == pytest.approx(0.2)


def test_within_the_estimates_accuracy_the_lowest_cut_is_named() -> None:
    """400 wrong examples and 999 sentinels between 4 and 5, one of each further down.

    That one right example costs a thousandth of the F1: less than the estimate can tell.
    """
    wrong = 4.00125 + 0.0025 * torch.arange(400)
    ordered = torch.cat((torch.zeros(599), torch.tensor([3.5]), wrong))
    sentinels = torch.cat((torch.tensor([3.0]), 4 + torch.arange(1, 1000) / 1000))
    mixture = estimate_mixture(ordered, sentinels, MANY)
    best = mixture.best_cut()
    assert best.lowest == 3.0
    assert 3.5 < best.threshold < 4.01
    assert mixture.rate == pytest.approx(0.4)


def test_where_nothing_lies_above_nothing_can_be_found() -> None:
    mixture = estimate_mixture(torch.zeros(5), torch.ones(4), num_classes=3)
    assert (mixture.best_cut().f1, mixture.rate) == (0.0, 0.0)


@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
def test_a_network_that_has_learnt_nothing_does_not_separate(num_classes: int) -> None:
    """Right labels look like planted ones: "all are wrong" would have an F1 of 1."""
    generator = torch.Generator().manual_seed(0)
    ordered = torch.randn(20_000, generator=generator).sort().values
    sentinels = torch.randn(1000, generator=generator).sort().values
    mixture = estimate_mixture(ordered, sentinels, num_classes)
    assert mixture.hopeless
    assert mixture.best_cut().f1 == 0.0


def test_f1_is_one_at_most() -> None:
    """All four wrong examples lie above the median of the sentinels: η is overestimated."""
    ordered = torch.tensor([0.0] * 16 + [5.0] * 4)
    assert estimate_mixture(ordered, torch.full((10,), 4.0), MANY).best_cut().f1 <= 1.0


def four_cuts(recall: list[float], flagged: list[float], rate: float = 0.2) -> Mixture:
    """Thresholds 1, 2, 3 and 4."""
    return Mixture(torch.arange(1.0, 5.0), torch.tensor(recall), torch.tensor(flagged), rate, False)


@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        (0.2, 1.0),  # reached even by removing half of all: 0.2 · 1.0 / 0.5 = 0.4
        (0.45, 2.0),  # 0.2 · 0.9 / 0.3 = 0.6
        (0.75, 3.0),  # 0.2 · 0.8 / 0.2 = 0.8
        (0.85, 4.0),  # 0.2 · 0.7 / 0.15 = 0.93
        (0.99, math.inf),  # by none
    ],
)
def test_the_cut_for_a_precision_by_hand(precision: float, expected: float) -> None:
    mixture = four_cuts([1.0, 0.9, 0.8, 0.7], [0.5, 0.3, 0.2, 0.15])
    assert mixture.cut_for(precision) == expected


def test_a_precision_reached_lower_down_by_chance_does_not_count() -> None:
    """0.9, 0.4, 0.8, 0.8 wrong above the four: the first is above the second."""
    mixture = four_cuts([0.9, 0.9, 0.8, 0.4], [0.2, 0.45, 0.2, 0.1])
    assert mixture.cut_for(0.7) == 3.0


def test_a_network_that_has_learnt_nothing_reaches_no_precision() -> None:
    mixture = four_cuts([1.0, 0.9, 0.8, 0.7], [0.2] * 4, rate=0.95)._replace(hopeless=True)
    assert mixture.cut_for(0.1) == math.inf


def test_of_very_many_scores_an_even_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw_mixture(0.2, 10, apart=3.0)
    monkeypatch.setattr(module, "PROBED", 8_000)
    few = draw_mixture(0.2, 10, apart=3.0)
    assert len(module.known_in_order(few.scores)) == 8_000
    assert few.noise_rate != whole.noise_rate
    assert few.noise_rate == pytest.approx(whole.noise_rate, abs=0.02)
    assert few.threshold == pytest.approx(whole.threshold, abs=0.1)


def spread(start: float, end: float, count: int) -> list[float]:
    return torch.linspace(start, end, count).tolist()


@pytest.mark.parametrize(
    ("scores", "threshold", "expected"),
    [
        # 20 right around -3, 6 wrong from 1 to 3: the stretch from -2 to 1 is empty
        ([*spread(-4, -2, 20), *spread(1, 3, 6)], 1.5, -0.5),
        # the same, but 6 more would go where only 2 may be added
        ([*spread(-4, -2, 20), *spread(0.5, 0.6, 6), *spread(2, 3, 4)], 1.5, 1.5),
        # two strays far below, most above: the stretch between is wide, but not just below
        ([-9, -8, *spread(-1, 1, 12), *spread(1.6, 3, 40)], 1.5, 1.5),
        # no stretch is wide
        (spread(-4, 3, 27), 1.5, 1.5),
        # nothing above, nothing below
        (spread(-4, -2, 20), 1.5, 1.5),
        (spread(2, 3, 20), 1.5, 1.5),
    ],
)
def test_the_cut_goes_into_a_wide_gap_just_below(
    scores: list[float], threshold: float, expected: float
) -> None:
    ordered = torch.tensor(scores).sort().values
    assert lower_into_gap(ordered, threshold) == pytest.approx(expected)
