"""The percentile that suits the noise: drawn mixtures of which the best cut is known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from oddly.core import Counterfactual
from oddly.core.judging import judge_by_sentinels
from oddly.core.sentinels import percentile as module
from oddly.core.sentinels.cut import (
    correct_percentile,
    estimate_mixture,
    known_in_order,
    original_percentile,
)
from oddly.core.sentinels.percentile import choose_percentile
from oddly.core.sentinels.planting import Scored
from oddly.core.verdict import Verdict
from tests.core.sentinels.mixtures import Drawn, draw_mixture


def scored(scores: Tensor, num_classes: int = 10, seed: int = 1) -> Scored:
    """With labels and rivals at random."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(num_classes, (len(scores),), generator=generator)
    shift = torch.randint(1, num_classes, (len(scores),), generator=generator)
    return Scored(scores.clone(), labels, (labels + shift) % num_classes)


def choose(drawn: Drawn, num_classes: int) -> float:
    return choose_percentile(scored(drawn.scores, num_classes), drawn.sentinels, num_classes)


def best_f1(drawn: Drawn) -> float:
    """Of any threshold on these scores."""
    wrong = drawn.wrong[drawn.scores.argsort(descending=True)].double()
    found, flagged = wrong.cumsum(0), torch.arange(1, len(wrong) + 1)
    return float((2 * found / (flagged + wrong.sum())).max())


@pytest.mark.parametrize("num_classes", [2, 10, 100])
@pytest.mark.parametrize("apart", [3.0, 3.6, 4.2])
@pytest.mark.parametrize("noise", [0.05, 0.1, 0.2, 0.4])
def test_random_noise_is_cut_no_worse_than_at_the_usual_percentile(
    noise: float, apart: float, num_classes: int
) -> None:
    usual = draw_mixture(noise, num_classes, apart=apart)
    percentile = choose(usual, num_classes)
    suited = draw_mixture(noise, num_classes, percentile, apart)
    assert 6 <= percentile <= 15 and suited.f1 >= usual.f1
    if suited.f1 > 0.85:  # else too little of the noise stands out to be taken for random
        assert suited.f1 > best_f1(usual) - 0.012
        low, high = suited.noise_rate[1:]
        assert low <= float(usual.wrong.float().mean()) <= high


@pytest.mark.parametrize("num_classes", [10, 100])
def test_the_less_noise_the_higher_the_cut(num_classes: int) -> None:
    """At a twentieth F1 rises from .81 to .87, the best there is."""
    drawn = [draw_mixture(noise, num_classes, apart=3.6) for noise in (0.05, 0.1, 0.2)]
    chosen = [choose(each, num_classes) for each in drawn]
    assert chosen == sorted(chosen, reverse=True)
    assert chosen[0] == 15 and 10 < chosen[1] < 12 and chosen[2] < 7
    suited = draw_mixture(0.05, num_classes, chosen[0], 3.6)
    assert suited.f1 > drawn[0].f1 + 0.06 and suited.f1 > best_f1(drawn[0]) - 0.003


def test_the_percentile_by_hand() -> None:
    """A fifth is wrong, and above the sixth percentile lie many right ones too."""
    drawn = draw_mixture(0.2, 100, apart=3.0)
    rate = float((drawn.scores >= drawn.sentinels.threshold(6.0)).float().mean())
    mixture = estimate_mixture(known_in_order(drawn.scores), drawn.sentinels.losses, 100)
    assert mixture.best_cut().f1 > 0.87  # so the noise is wholly random
    assert mixture.best_cut().threshold > drawn.sentinels.threshold(12.0)  # and no bound
    chosen = choose(drawn, 100)
    assert chosen == pytest.approx(17 - 23 * rate, abs=0.11)


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.2])
def test_confusions_that_score_lower_than_random_labels_keep_the_usual_one(noise: float) -> None:
    """As people's: half-way between right and random labels."""
    drawn = draw_mixture(noise, 10, apart=4.0)
    scores = drawn.scores - 2.0 * drawn.wrong
    assert choose_percentile(scored(scores), drawn.sentinels, 10) == 6.0


@pytest.mark.parametrize(("noise", "apart"), [(0.2, 8.0), (0.0, 4.0), (0.2, 1.0)])
def test_nor_does_it_change_where_nothing_overlaps_nothing_is_wrong_or_nothing_is_learnt(
    noise: float, apart: float
) -> None:
    drawn = draw_mixture(noise, 10, apart=apart)
    assert choose(drawn, 10) == 6.0


def judge(drawn: Drawn, percentile: float | None, target: float | None = None) -> Verdict:
    """Label 3 is hard: its right labels score higher."""
    examples, sentinels = scored(drawn.scores), scored(drawn.sentinels.losses)
    for group in (examples, sentinels):
        group.scores[group.labels == 3] += 0.5
    return judge_by_sentinels(
        examples, drawn.scores, sentinels, percentile, 3, 10, target_precision=target
    )


def test_the_verdict_tells_what_was_chosen_and_heeds_what_was_named() -> None:
    drawn = draw_mixture(0.05, 10, apart=3.6)
    chosen = judge(drawn, None)
    assert 12 < chosen.percentile <= 15 and not chosen.hardly_learnt
    assert judge(drawn, 6.0).percentile == 6.0
    assert judge(drawn, 6.0).num_removed > chosen.num_removed
    assert torch.equal(judge(drawn, chosen.percentile).keep, chosen.keep)
    assert judge(drawn, None, 0.9).num_removed == judge(drawn, 6.0, 0.9).num_removed


def test_where_nothing_stands_out_the_usual_one_is_kept() -> None:
    drawn = draw_mixture(0.2, 10, apart=1.0)
    doubted = judge(drawn, None)
    assert doubted.hardly_learnt and doubted.percentile == 6.0


def test_two_that_look_random_among_many_confusions_are_no_mixture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """300 wrong labels below nearly all sentinels, two above their median: a good F1 of nothing."""
    places = (torch.arange(300) + 0.5) / 300
    sentinels = Counterfactual.from_losses(3 + 0.6 * torch.special.ndtri(places), "sentinels")
    confused = 1.9 + 0.25 * torch.special.ndtri(places)
    scores = torch.cat((torch.linspace(-5, -1, 1000), confused, torch.tensor([3.2, 3.4])))
    assert choose_percentile(scored(scores), sentinels, 10) == 6.0
    monkeypatch.setattr(module, "MEANT", 0.0)
    assert choose_percentile(scored(scores), sentinels, 10) > 12


def test_sentinels_that_are_few() -> None:
    sentinels = Counterfactual.from_losses(torch.linspace(0.5, 4, 10), "sentinels")
    scores = torch.cat((torch.linspace(-4, 0, 90), torch.linspace(1, 4, 10)))
    assert 6 <= choose_percentile(scored(scores), sentinels, 10) <= 15


@pytest.mark.parametrize(("share", "rises"), [(0.2, True), (0.9, False)])
def test_one_pair_among_what_a_higher_cut_would_spare_is_a_confusion(
    share: float, rises: bool
) -> None:
    """Beside random noise: label 1 with rival 0."""
    drawn = draw_mixture(0.05, 10, apart=3.6)
    examples = scored(drawn.scores)
    low, high = (drawn.sentinels.threshold(p) for p in (4.0, 20.0))
    between = ((examples.scores >= low) & (examples.scores < high)).nonzero().flatten()
    few = between[: round(share * len(between))]
    examples.labels[few], examples.rivals[few] = 1, 0
    assert (choose_percentile(examples, drawn.sentinels, 10) > 6) == rises


@pytest.mark.parametrize("num_classes", [2, 10])
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_a_corrected_percentile_and_back(rate: float, num_classes: int) -> None:
    there = correct_percentile(7.0, rate, num_classes)
    assert original_percentile(there, rate, num_classes) == pytest.approx(7.0)
