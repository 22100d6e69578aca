"""Where to cut drawn mixtures: noise rates, target precisions, and what doubt changes."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from oddly.core import Counterfactual
from oddly.core.sentinels import cut as module
from oddly.core.sentinels.cut import (
    correct_percentile,
    cut_by_sentinels,
    estimate_mixture,
    known_in_order,
)
from tests.core.sentinels.mixtures import draw_mixture

MANY = 10**9  # classes; so many that no planted label is right by accident


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


def test_a_percentile_that_somebody_named_is_where_the_cut_is() -> None:
    """Right and wrong lie six deviations apart; a third of the wrong ones is to be kept."""
    drawn = draw_mixture(0.3, 100)
    free, named = (
        cut_by_sentinels(drawn.scores, drawn.sentinels, 33.0, 100, named=named)[0]
        for named in (False, True)
    )
    assert free < 1 < named
    assert float((drawn.scores[drawn.wrong] >= named).float().mean()) == pytest.approx(
        0.67, abs=0.02
    )


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


def test_the_lower_end_by_hand() -> None:
    """A hundred sentinels, above half of which lie 6 %, above three quarters 2 % of the examples.

    The half says that 12 % are random, the quarter 8 %: the 4 % between them fall away twice, and
    two standard errors of the rate, 20 %. With very many classes no sentinel hits the truth.
    """
    sentinels = Counterfactual.from_losses(torch.arange(1.0, 101.0), "sentinels")
    heights = torch.tensor([0.0, 20.0, 60.0, 90.0])
    scores = heights.repeat_interleave(torch.tensor([8_000, 1_400, 400, 200]))
    _, (rate, low, _) = cut_by_sentinels(scores, sentinels, 6.0, MANY, named=True)
    assert rate == pytest.approx(0.2) and low == pytest.approx(0.04 - 0.008)


@pytest.mark.parametrize("apart", [1.5, 2.0, 2.5])
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.1])
def test_where_right_labels_lie_among_the_highest_sentinels_the_interval_holds(
    noise: float, apart: float
) -> None:
    """As of images that are hard: the upper half says 1 to 13 % more than are wrong."""
    drawn = draw_mixture(noise, 10, apart=apart)
    by_half = estimate_mixture(known_in_order(drawn.scores), drawn.sentinels.losses, 10).rate
    assert by_half > noise + 0.008
    _, low, high = drawn.noise_rate
    assert low <= float(drawn.wrong.float().mean()) <= high


@pytest.mark.parametrize("noise", [0.05, 0.2, 0.4])
def test_where_none_do_the_lower_end_stays_near_the_truth(noise: float) -> None:
    assert draw_mixture(noise, 10).noise_rate[1] > 0.8 * noise


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
    threshold, (rate, low, high) = cut_by_sentinels(scores, sentinels, 0.0, MANY, trust=0.0)
    assert (threshold, rate) == (3.0, pytest.approx(0.1))
    assert low <= rate and high > 0.5
    nothing_learnt, rates = cut_by_sentinels(scores, sentinels, 0.0, MANY, trust=None)
    assert not (scores >= nothing_learnt).any() and rates == (rate, low, high)


def test_with_half_the_trust_half_of_the_rest_goes() -> None:
    """Four of 40 for sure and twenty at most, as above: twelve."""
    sentinels = Counterfactual.from_losses(torch.arange(1.0, 11.0), "sentinels")
    scores = torch.cat((torch.zeros(20), torch.linspace(2, 2.9, 16), torch.tensor([3, 4, 7, 8.0])))
    threshold, (rate, *_) = cut_by_sentinels(scores, sentinels, 0.0, MANY, trust=0.5)
    assert int((scores >= threshold).sum()) == 12
    assert rate == pytest.approx(0.3)


@pytest.mark.parametrize("num_classes", [3, 10, 100])
def test_where_right_and_wrong_are_nearly_alike_doubt_spares_the_right_ones(
    num_classes: int,
) -> None:
    for noise in (0.02, 0.2):
        bold = draw_mixture(noise, num_classes, apart=1.5)
        shy = draw_mixture(noise, num_classes, apart=1.5, trust=0.0)
        assert shy.flagged.float().mean() < bold.flagged.float().mean() / 1.25
        assert shy.precision > bold.precision
        rate, low, high = shy.noise_rate
        assert low <= rate <= high


@pytest.mark.parametrize("target_precision", [None, 0.5])
@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
def test_a_network_that_has_learnt_nothing_removes_nothing(
    num_classes: int, target_precision: float | None
) -> None:
    options = {"target_precision": target_precision, "trust": 0.0}
    drawn = draw_mixture(0.2, num_classes, apart=0.0, **options)  # type: ignore[arg-type]
    assert not drawn.flagged.any()


def test_the_interval_encloses_the_rate_also_where_hardly_anything_is_learnt() -> None:
    """Right and wrong nearly alike: the rate is then another estimate's, the interval is not."""
    drawn = draw_mixture(0.02, 100, apart=1.25, trust=0.0)
    by_percentile = drawn.sentinels.threshold(6.0)
    assert (drawn.scores >= by_percentile).float().mean() > 0.6
    assert drawn.flagged.float().mean() < 0.5
    rate, low, high = drawn.noise_rate
    assert low <= rate <= high


def test_doubt_limits_a_target_precision_too() -> None:
    bold, shy = (
        draw_mixture(0.2, 10, apart=1.0, target_precision=0.3, trust=trust) for trust in (1.0, 0.0)
    )
    assert shy.flagged.float().mean() < 0.8 * bold.flagged.float().mean()


@pytest.mark.parametrize(("noise", "apart"), [(0.3, 6.0), (0.1, 3.6), (0.3, 2.0)])
def test_a_hair_of_trust_moves_hardly_anything(noise: float, apart: float) -> None:
    """From none to all: never less, and never much more at once."""
    shares = [
        float(draw_mixture(noise, 10, apart=apart, trust=k / 50).flagged.float().mean())
        for k in range(51)
    ]
    assert shares == sorted(shares)
    assert max(b - a for a, b in itertools.pairwise(shares)) < 0.01


def test_nothing_is_removed_that_a_sample_did_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBED", 200)
    drawn = draw_mixture(0.2, 10, apart=0.0, trust=0.0)
    assert not drawn.flagged.any()


def test_doubt_never_removes_more() -> None:
    """Not where right and wrong lie far apart, nor where nothing looks wrong."""
    for noise in (0.0, 0.3):
        bold, shy = (draw_mixture(noise, 10, trust=trust) for trust in (1.0, 0.0))
        assert shy.threshold >= bold.threshold
    threshold, _ = cut_by_sentinels(
        torch.zeros(5), Counterfactual.from_losses(torch.ones(4), "sentinels"), 6.0, 10, None, 0.0
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
