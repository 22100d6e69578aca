"""Where to cut: percentiles corrected by hand, and thresholds on drawn mixtures."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from oddly.core import Counterfactual
from oddly.core import cut as module
from oddly.core.cut import (
    Mixture,
    correct_percentile,
    cut_by_sentinels,
    estimate_mixture,
    lower_into_gap,
)

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
    doubted: bool = False,
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
    found = cut_by_sentinels(scores, sentinels, percentile, num_classes, target_precision, doubted)
    return Drawn(scores, sentinels, wrong, *found)


@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2, 0.4])
def test_the_noise_rate_of_a_mixture(noise: float, num_classes: int) -> None:
    rate, low, high = draw_mixture(noise, num_classes).noise_rate
    assert rate == pytest.approx(noise, abs=0.03)
    assert low <= rate <= high


@pytest.mark.parametrize("num_classes", [2, 3, 10])
@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_where_right_and_wrong_lie_apart_the_cut_is_between_them(
    noise: float, num_classes: int
) -> None:
    """With 40 % noise and three classes, a fifth of the sentinels score like right labels."""
    drawn = draw_mixture(noise, num_classes)
    assert -2 < drawn.threshold < 2
    assert drawn.f1 > 0.97


@pytest.mark.parametrize("num_classes", [2, 3, 10])
@pytest.mark.parametrize(("noise", "apart"), [(0.1, 3.0), (0.2, 2.5), (0.3, 2.0)])
def test_noise_rate_and_threshold_agree_also_where_right_and_wrong_overlap(
    noise: float, apart: float, num_classes: int
) -> None:
    """The rate is the share above the cut that the rate itself corrects for accidental hits."""
    drawn = draw_mixture(noise, num_classes, percentile=10.0, apart=apart)
    rate = drawn.noise_rate[0]
    cut = drawn.sentinels.threshold(correct_percentile(10.0, rate, num_classes))
    assert (drawn.scores >= cut).float().mean() == pytest.approx(rate, abs=0.01)
    assert drawn.threshold <= cut + 0.02


@pytest.mark.parametrize("percentile", [0.0, 2.0, 10.0, 40.0])
def test_no_more_wrong_ones_are_kept_than_the_percentile_allows(percentile: float) -> None:
    assert 1 - draw_mixture(0.3, 3, percentile).recall <= percentile / 100 + 0.02


def test_the_noise_rates_interval_is_that_of_half_the_percentile_and_the_upper_half() -> None:
    """Wrong and right overlap here, so that the cut matters; 0.004: two standard errors."""
    drawn = draw_mixture(0.2, 100, apart=3.0)
    rate, low, high = drawn.noise_rate
    lax = draw_mixture(0.2, 100, 3.0, apart=3.0)
    assert high == pytest.approx(lax.noise_rate[0] + 0.004, abs=0.0005)
    upper_half = drawn.scores >= drawn.sentinels.threshold(50.0 + 50 * rate / 99)
    assert low == pytest.approx(2 * float(upper_half.float().mean()) - 0.004, abs=0.002)
    assert low < 0.2 < rate < high


@pytest.mark.parametrize("examples", [300, 1_000, 40_000])
def test_the_interval_holds_the_truth_however_few_there_are(examples: int) -> None:
    held = []
    for seed in range(40):
        for noise in (0.0, 0.1, 0.4):
            drawn = draw_mixture(noise, 10, apart=4.0, examples=examples, seed=seed)
            held.append(
                drawn.noise_rate[1] <= float(drawn.wrong.float().mean()) <= drawn.noise_rate[2]
            )
    assert sum(held) >= 0.9 * len(held)


def test_a_doubted_network_removes_what_the_sentinels_upper_half_vouches_for() -> None:
    """Ten sentinels; above their median, 5, lie two of 40 examples, so four seem to be wrong.

    Above the percentile's cut, 1, lie twenty. With very many classes no sentinel hits the truth.
    """
    sentinels = Counterfactual.from_losses(torch.arange(1.0, 11.0), "sentinels")
    scores = torch.tensor([0.0] * 20 + [2.0] * 16 + [3.0, 4.0, 7.0, 8.0])
    trusted, _ = cut_by_sentinels(scores, sentinels, 0.0, MANY)
    assert int((scores >= trusted).sum()) == 20
    threshold, (rate, low, high) = cut_by_sentinels(scores, sentinels, 0.0, MANY, doubted=True)
    assert (threshold, rate) == (3.0, pytest.approx(0.1))
    assert low <= rate and high > 0.5


@pytest.mark.parametrize("num_classes", [3, 10, 100])
def test_where_right_and_wrong_are_nearly_alike_doubt_spares_the_right_ones(
    num_classes: int,
) -> None:
    for noise in (0.02, 0.2):
        bold = draw_mixture(noise, num_classes, apart=1.5)
        shy = draw_mixture(noise, num_classes, apart=1.5, doubted=True)
        assert shy.flagged.float().mean() < bold.flagged.float().mean() / 1.25
        assert shy.precision > bold.precision
        rate, low, high = shy.noise_rate
        assert low <= rate <= high


@pytest.mark.parametrize("target_precision", [None, 0.5])
@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
def test_a_network_that_has_learnt_nothing_removes_nothing(
    num_classes: int, target_precision: float | None
) -> None:
    options = {"target_precision": target_precision, "doubted": True}
    drawn = draw_mixture(0.2, num_classes, apart=0.0, **options)  # type: ignore[arg-type]
    assert not drawn.flagged.any()


def test_doubt_limits_a_target_precision_too() -> None:
    bold, shy = (
        draw_mixture(0.2, 10, apart=1.0, target_precision=0.3, doubted=doubted)
        for doubted in (False, True)
    )
    assert shy.flagged.float().mean() < 0.8 * bold.flagged.float().mean()


def test_doubt_never_removes_more() -> None:
    """Not where right and wrong lie far apart, nor where nothing looks wrong."""
    for noise in (0.0, 0.3):
        bold, shy = (draw_mixture(noise, 10, doubted=doubted) for doubted in (False, True))
        assert shy.threshold >= bold.threshold
    threshold, _ = cut_by_sentinels(
        torch.zeros(5), Counterfactual.from_losses(torch.ones(4), "sentinels"), 6.0, 10, None, True
    )
    assert threshold >= 1.0


def test_examples_never_seen_do_not_count_for_the_noise_rate() -> None:
    sentinels = Counterfactual.from_losses(torch.linspace(5, 6, 50), "sentinels")
    scores = torch.tensor([0.0] * 30 + [7.0] * 10 + [math.nan] * 40)
    threshold, noise_rate = cut_by_sentinels(scores, sentinels, 6.0, num_classes=10)
    error = 2 * math.sqrt(0.25 * 0.75 / 40)
    assert noise_rate == pytest.approx((0.25, 0.25 - error, 0.25 + error))
    assert 0 < threshold <= 7


PRECISIONS = (0.5, 0.7, 0.8, 0.9, 0.95)


@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
@pytest.mark.parametrize(("noise", "apart"), [(0.1, 3.0), (0.2, 3.0), (0.3, 2.5), (0.2, 4.0)])
def test_a_mixture_knows_its_precision(noise: float, apart: float, num_classes: int) -> None:
    """Where wrong labels are as random as the sentinels, which is what it supposes."""
    drawn = draw_mixture(noise, num_classes, apart=apart)
    ordered = drawn.scores.sort().values
    mixture = estimate_mixture(ordered, drawn.sentinels.losses, num_classes)
    for target in PRECISIONS:
        found = drawn._replace(threshold=mixture.cut_for(target)).precision
        assert found == pytest.approx(target, abs=0.07)


@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
@pytest.mark.parametrize(("noise", "apart"), [(0.05, 4.0), (0.2, 4.0), (0.4, 4.0)])
def test_a_target_precision_is_about_reached(noise: float, apart: float, num_classes: int) -> None:
    for target in PRECISIONS:
        drawn = draw_mixture(noise, num_classes, apart=apart, target_precision=target)
        assert drawn.precision == pytest.approx(target, abs=0.05)
        assert drawn.recall > 0.9


@pytest.mark.parametrize("num_classes", [2, 10])
def test_the_more_precision_the_fewer_are_removed(num_classes: int) -> None:
    cuts = [
        draw_mixture(0.2, num_classes, apart=3.0, target_precision=target)
        for target in (0.3, *PRECISIONS, 0.99)
    ]
    thresholds = [drawn.threshold for drawn in cuts]
    assert thresholds == sorted(thresholds)
    assert thresholds[0] < thresholds[3] < thresholds[-1]
    assert len({drawn.noise_rate for drawn in cuts}) == 1  # the estimate is the percentile's


def test_a_target_precision_moves_the_cut_either_way() -> None:
    by_percentile = draw_mixture(0.2, 10, apart=3.0)
    low, high = (draw_mixture(0.2, 10, apart=3.0, target_precision=p) for p in (0.4, 0.95))
    assert low.threshold < by_percentile.threshold < high.threshold
    assert low.recall > by_percentile.recall > high.recall


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
