"""Where to cut, by hand; `test_cut_mixtures.py` has drawn mixtures."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from oddly.core.sentinels import cut as module
from oddly.core.sentinels.cut import (
    Mixture,
    _above,
    correct_percentile,
    estimate_mixture,
    lower_into_valley,
)
from tests.core.sentinels.mixtures import draw_mixture

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
    assert best.threshold == 4.0  # recall 1, four of four flagged
    assert best.f1 == pytest.approx(1.0)
    assert mixture.rate == pytest.approx(0.4)


def test_best_cut_avoids_the_right_ones() -> None:
    """The lowest sentinel lies among the right labels: there six more would go for one found."""
    ordered = torch.tensor([0.0] * 10 + [1.0] * 6 + [4.15, 4.25, 4.6, 4.75])
    sentinels = torch.tensor([0.5, 4.0, 4.1, 4.2, 4.3, 4.4, 4.5, 4.6, 4.7, 4.8])
    mixture = estimate_mixture(ordered, sentinels, MANY)
    best = mixture.best_cut()
    assert 1.0 < best.threshold <= 4.0
    assert best.f1 == pytest.approx(2 * 0.2 * 0.9 / (0.2 + 0.2))  # all four go, 0.9 are found
    assert mixture.rate == pytest.approx(0.2)


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


def hill(middle: float, count: int, width: float = 0.5) -> Tensor:
    """So many scores as evenly spread as a normal distribution has them."""
    places = (torch.arange(count) + 0.5) / count
    return middle + width * torch.special.ndtri(places)


TAIL = -3 - 1.5 * torch.log1p(-(torch.arange(1000) + 0.5) / 1000)  # ever fewer above -3


@pytest.mark.parametrize(
    ("parts", "threshold", "low", "high"),
    [
        # the threshold cuts through the hill of the wrong ones: down, to between the two
        ((hill(-1.2, 700), hill(2, 300)), 2.1, 0.2, 0.8),
        # it lies between them already, below the bottom
        ((hill(-1.2, 700), hill(2, 300)), 0.2, 0.2, 0.2),
        # one hill and what trails off from it
        ((TAIL,), 1.0, 1.0, 1.0),
        # hills upon each other leave no valley worth the name
        ((hill(-0.5, 700), hill(0.7, 300)), 1.0, 1.0, 1.0),
        # the valley is where labels fit better than their rivals
        ((hill(-6, 500), hill(-2, 400), TAIL[:50] + 3), 0.8, 0.8, 0.8),
        # a bottom below 0, and slopes above it
        ((hill(-3, 700), hill(1, 300)), 1.1, 1.1, 1.1),
        # the deeper valley is the one that counts, not the nearer
        ((hill(-1.2, 700), hill(1.7, 200, 0.3), hill(2.7, 100, 0.3)), 2.6, 0.2, 0.8),
        # nothing above, nothing below
        ((hill(-3, 100),), 1.5, 1.5, 1.5),
        ((hill(5, 100),), 1.5, 1.5, 1.5),
    ],
)
def test_the_cut_goes_into_a_valley_just_below(
    parts: tuple[Tensor, ...], threshold: float, low: float, high: float
) -> None:
    ordered = torch.cat(parts).sort().values
    assert low <= lower_into_valley(ordered, threshold, height=2.0) <= high


def test_the_valleys_bottom_against_a_slow_twin() -> None:
    ordered = torch.cat((hill(-0.8, 700), hill(1.5, 300))).sort().values
    middle = float(ordered[int((ordered < 1.6).sum()) // 2])
    width = module.SMOOTHING * (2.0 - middle)

    def density(place: float) -> float:
        return sum(math.exp(-(((place - score) / width) ** 2) / 2) for score in ordered.tolist())

    places = [0.02 * k for k in range(81)]  # from 0 to the threshold, 1.6
    expected = min(places, key=density)
    assert lower_into_valley(ordered, 1.6, height=2.0) == pytest.approx(expected, abs=0.03)


def test_a_valley_is_as_deep_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few thousand, evenly taken, show it as well as all."""
    ordered = torch.cat((hill(-1, 70_000), hill(2, 30_000))).sort().values
    few = lower_into_valley(ordered, 2.1, height=2.0)
    assert few < 1.0
    monkeypatch.setattr(module, "PLOTTED", 10**9)
    assert few == pytest.approx(lower_into_valley(ordered, 2.1, height=2.0), abs=0.03)


def test_strays_far_above_do_not_hide_the_valley() -> None:
    hills = torch.cat((hill(-1.2, 700), hill(2, 300)))
    strays = torch.tensor([1e4, 1e20])
    found = lower_into_valley(torch.cat((hills.sort().values, strays)), 2.1, height=2.0)
    assert 0.2 < found < 0.8
    assert lower_into_valley(torch.cat((hill(-3, 999), strays)), 1.5, height=2.0) == 1.5


@pytest.mark.parametrize(("count", "moves"), [(3, False), (12, False), (120, True)])
def test_a_few_examples_are_no_hill(count: int, moves: bool) -> None:
    """Fewer than a dozen within the smoothing leave gaps as deep by chance."""
    ordered = torch.cat((hill(-1.2, 700), hill(2, count, 0.8))).sort().values
    assert (lower_into_valley(ordered, 2.1, height=2.0) < 2.1) == moves


def test_a_threshold_that_none_reaches() -> None:
    """However large the highest is, and though a sample may lack it."""
    for highest in (0.0, 5.0, 3e8, 1e30):
        scores = torch.tensor([-1.0, highest, math.nan, highest])
        assert not (scores >= _above(scores)).any()


def test_without_distance_there_is_no_scale() -> None:
    """Sentinels no higher than what is kept: the network has learnt nothing."""
    ordered = torch.cat((hill(1, 700), hill(5, 300))).sort().values
    assert lower_into_valley(ordered, 5.1, height=0.5) == 5.1
