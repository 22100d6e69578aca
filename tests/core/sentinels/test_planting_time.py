"""How far sentinels lie apart from the rest, and when that says that it is time to prune."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from oddly.core.sentinels import cut
from oddly.core.sentinels.planting import Sentinels, separation
from tests.reference import sentinels as twin

NAN = math.nan


@pytest.mark.parametrize("seed", range(4))
def test_separation_against_the_twin(seed: int) -> None:
    planted, scores = twin.draw_scores(seed)
    expected = twin.separation(planted.tolist(), scores.tolist())
    assert separation(planted, scores) == pytest.approx(expected, rel=1e-4)


def test_separation_by_hand() -> None:
    """Mean 5; lower quartile 0, the second of five; variances 1 and 7: their mean is 2²."""
    planted = torch.tensor([4.0, 6.0, NAN])
    scores = torch.tensor([0.0, NAN, math.sqrt(17.5), 0.0, math.sqrt(17.5), 0.0])
    assert scores[~scores.isnan()].var(correction=0).item() == pytest.approx(4.2)
    assert separation(planted, scores) == pytest.approx(5 / math.sqrt((1 + 4.2) / 2))


@pytest.mark.parametrize(
    ("planted", "scores"),
    [([], [1.0]), ([1.0], []), ([], []), ([NAN, NAN], [1.0, 2.0]), ([1.0], [NAN, math.inf])],
)
def test_nothing_observed_is_no_separation(planted: list[float], scores: list[float]) -> None:
    assert separation(torch.tensor(planted), torch.tensor(scores)) == 0.0


def test_all_alike_is_no_separation_and_no_nan() -> None:
    assert separation(torch.full((5,), 3.0), torch.full((9,), 3.0)) == 0.0
    assert separation(torch.tensor([3.0]), torch.tensor([3.0])) == 0.0


def test_a_network_that_has_learnt_nothing() -> None:
    """Two like normal curves: the lower quartile lies 0.674 deviations below the mean."""
    generator = torch.Generator().manual_seed(0)
    planted, scores = (torch.randn(20_000, generator=generator) for _ in range(2))
    assert separation(planted, scores) == pytest.approx(0.674, abs=0.03)


def drawn(wrong_share: float, apart: float) -> tuple[Tensor, Tensor]:
    """Sentinels and examples, the wrong ones of which score like sentinels: `apart` more."""
    generator = torch.Generator().manual_seed(0)
    wrong = torch.rand(40_000, generator=generator) < wrong_share
    scores = apart * wrong + torch.randn(40_000, generator=generator)
    return apart + torch.randn(2_000, generator=generator), scores


@pytest.mark.parametrize("wrong_share", [0.0, 0.2, 0.5, 0.7])
def test_better_told_apart_is_more_separation_even_if_most_labels_are_wrong(
    wrong_share: float,
) -> None:
    separations = [separation(*drawn(wrong_share, apart)) for apart in (0.0, 1.0, 2.0, 4.0)]
    assert separations == sorted(separations)
    assert separations[-1] > 1.5 * separations[0]


def test_a_shift_or_a_scale_of_all_logits_changes_nothing() -> None:
    planted, scores = drawn(0.3, 3.0)
    once = separation(planted, scores)
    assert separation(5 * planted + 7, 5 * scores + 7) == pytest.approx(once, rel=1e-3)


def test_of_very_many_examples_an_even_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    planted, scores = drawn(0.3, 3.0)
    whole = separation(planted, scores)
    monkeypatch.setattr(cut, "PROBED", 5_000)
    few = separation(planted, scores)
    assert few != whole
    assert few == pytest.approx(whole, rel=0.05)


def said_after(history: list[float], epochs: int) -> int | None:
    """The epoch after which sentinels of these separations, but of no score, say it is time."""
    sentinels = Sentinels(1000, 10, "ema", seed=0)
    for separated in history:
        sentinels.separations.append(separated)
        if sentinels.say_now(epochs, torch.zeros(1000)):
            return len(sentinels.separations)
    return None


@pytest.mark.parametrize(
    ("epochs", "latest"), [(1, 1), (2, 1), (3, 2), (4, 3), (10, 8), (30, 24), (32, 25), (200, 160)]
)
def test_never_fallen_means_four_fifths(epochs: int, latest: int) -> None:
    assert said_after([2.0] * epochs, epochs) == latest
    assert said_after([1.0 + 0.1 * epoch for epoch in range(epochs)], epochs) == latest


def test_fallen_twice_in_a_row_means_now() -> None:
    """Below nine tenths of the best, 3.0, that is below 2.7."""
    assert said_after([1.0, 3.0, 2.69, 2.69], 30) == 4
    assert said_after([1.0, 3.0, 2.9, 2.8, 2.6, 2.0, 1.5], 30) == 6
    assert said_after([3.0, 2.0, 1.0], 30) == 3


def test_one_dip_does_not() -> None:
    assert said_after([1.0, 3.0, 2.0, 2.75, 2.0, 3.0, 1.0], 30) is None


def test_nine_tenths_exactly_is_not_below() -> None:
    assert said_after([1.0, 2.0, 1.8, 1.8, 1.8], 30) is None


def test_a_network_that_has_not_begun_to_learn_is_waited_for() -> None:
    """Nothing told apart at all: 0 is not below 0.9 · 0."""
    assert said_after([0.0] * 10, 30) is None


def test_the_best_may_lie_far_back() -> None:
    """A slow fall, each epoch within a tenth of the one before it."""
    history = [3.0 * 0.98**epoch for epoch in range(30)]
    assert said_after(history, 100) == 8  # 0.98⁶ = 0.886 and 0.98⁷


def separated_after(apart: float, num_wrong: int = 600, epochs: int = 30) -> int:
    """The epoch when sentinels whose separation never falls say it is time.

    3,000 examples, margins -3 ± 1, of the wrong ones and of the 300 sentinels `apart` more.
    """
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3000, generator=generator) - 3
    scores[:num_wrong] += apart
    planted = torch.randn(300, generator=generator) - 3 + apart
    return told_after(planted, scores, epochs)


def told_after(planted: Tensor, scores: Tensor, epochs: int = 30) -> int:
    """The same for 300 sentinels and 3,000 examples that score alike in every epoch."""
    sentinels = Sentinels(3000, 10, "ema", seed=0)
    while True:
        sentinels.ledger.record(torch.arange(300), planted)
        sentinels.close_epoch(scores)
        if sentinels.say_now(epochs, scores):
            return len(sentinels.separations)


@pytest.mark.parametrize(("epochs", "expected"), [(1, 1), (3, 1), (4, 2), (30, 10), (31, 11)])
def test_a_separation_that_can_hardly_improve_means_the_first_third(
    epochs: int, expected: int
) -> None:
    assert separated_after(8.0, epochs=epochs) == expected


def test_an_overlap_is_waited_upon() -> None:
    """Two apart: the best F1 that can be had is 0.7."""
    assert separated_after(apart=2.0) == 24


def test_a_network_that_takes_most_labels_for_random_has_found_nothing() -> None:
    """88 % score like sentinels: to remove all of these would be right, did the others not lie
    so close (a contrast of 8.2). Further off, the network knows them.
    """
    generator = torch.Generator().manual_seed(0)
    planted, like_them = (torch.randn(n, generator=generator) for n in (300, 2640))
    others = torch.randn(360, generator=generator) / 5
    near, far = (torch.cat((like_them, others - apart)) for apart in (2.6, 5.0))
    assert (told_after(planted, near), told_after(planted, far)) == (24, 10)


def test_without_wrong_labels_there_is_nothing_to_separate() -> None:
    assert separated_after(apart=8.0, num_wrong=0) == 24


def test_no_score_known_yet_is_no_reason() -> None:
    sentinels = Sentinels(1000, 10, "ema", seed=0)
    sentinels.close_epoch(torch.full((1000,), NAN))
    assert sentinels.separations == [0.0]
    assert not sentinels.say_now(30, torch.full((1000,), NAN))
