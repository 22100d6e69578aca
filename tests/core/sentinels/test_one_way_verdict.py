"""What a verdict does and says where labels went wrong by a rule."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from oddly.core import Verdict
from oddly.core.judging import judge_by_sentinels
from oddly.core.sentinels.learnt import NOTHING
from oddly.core.sentinels.one_way import tell_one_way
from oddly.core.sentinels.planting import Scored


def shift_labels(share: float, seed: int = 0) -> tuple[Scored, Scored, Tensor]:
    """Ten classes whose labels are the next one's for a share; wrong ones score 1 ± 0.5."""
    generator = torch.Generator().manual_seed(seed)
    true = torch.arange(4_000) % 10
    wrong = torch.rand(4_000, generator=generator) < share
    labels = (true + wrong) % 10
    scores = torch.where(wrong, 1.0, -5.0) + torch.randn(4_000, generator=generator) / 2
    near = torch.where(wrong, true, (true + 3) % 10)
    planted = torch.arange(400) % 10
    high = 6 + torch.randn(400, generator=generator)
    return Scored(scores, labels, near), Scored(high, planted, (planted + 5) % 10), wrong


def judge(percentile: float | None = None, aim: float | None = None) -> tuple[Verdict, Tensor]:
    examples, sentinels, wrong = shift_labels(0.3)
    losses = examples.scores.clone()
    verdict = judge_by_sentinels(examples, losses, sentinels, percentile, 3, 10, False, aim)
    return verdict, wrong


def test_a_part_that_numbers_its_classes_otherwise_is_found() -> None:
    verdict, wrong = judge()
    assert len(verdict.one_way) == 10
    found = ~verdict.keep
    assert bool((found == wrong).float().mean() > 0.98)
    assert verdict.noise_rate is not None
    rate, low, high = verdict.noise_rate
    assert low <= rate <= high and rate == pytest.approx(float(found.float().mean()))
    assert low <= float(wrong.float().mean()) <= high < 0.35


def test_raised_scores_are_not_compared_with_random_labels() -> None:
    verdict, _ = judge()
    pairs = set(verdict.one_way)
    assert verdict.rivals is not None
    seen = zip(verdict.labels.tolist(), verdict.rivals.tolist(), strict=True)
    assert verdict.percentiles.isnan().tolist() == [pair in pairs for pair in seen]
    usual, _ = judge(6.0)
    assert not usual.percentiles.isnan().any()


@pytest.mark.parametrize(("percentile", "aim"), [(6.0, None), (None, 0.9)])
def test_a_cut_that_the_user_chose_is_left_alone(
    percentile: float | None, aim: float | None
) -> None:
    verdict, wrong = judge(percentile, aim)
    assert verdict.one_way == ()


def test_it_is_told_with_the_names_of_classes_or_their_numbers() -> None:
    verdict, _ = judge()
    names = [f"kind {k}" for k in range(10)]
    assert verdict.cautions(names)[0].startswith(
        "labels seem to be systematically wrong: 10 classes contain images of one other class,"
        " but not the other way round (kind 9 among kind 0, kind 0 among kind 1, kind 1 among"
    )
    assert "(9 among 0, 0 among 1, 1 among 2, …)" in str(verdict)
    assert tell_one_way([]) is None


def test_it_survives_a_checkpoint_and_one_of_before_has_none() -> None:
    verdict, _ = judge()
    state = verdict.state_dict()
    assert Verdict.from_state(state).one_way == verdict.one_way
    del state["one_way"]
    assert Verdict.from_state(state).one_way == ()


def test_no_word_where_nothing_is_wrong() -> None:
    examples, sentinels, _ = shift_labels(0.0)
    verdict = judge_by_sentinels(examples, examples.scores.clone(), sentinels, None, 3, 10)
    assert verdict.one_way == () and verdict.cautions() == []


def test_low_contrast_is_not_doubted_where_a_rule_explains_it() -> None:
    examples, sentinels, _ = shift_labels(0.3)
    near = sentinels._replace(scores=4 * (sentinels.scores - 6))
    losses = examples.scores.clone()
    verdict = judge_by_sentinels(examples, losses, near, None, 3, 10)
    assert verdict.hardly_learnt and verdict.num_removed
    assert len(verdict.one_way) == 10 and verdict.tell_doubt() is None
    assert len(verdict.cautions()) == 1


def test_a_network_that_has_learnt_nothing_knows_of_no_rule() -> None:
    """Planted labels that score no higher than the given ones: contrast 2.7."""
    examples, sentinels, _ = shift_labels(0.3)
    low = sentinels._replace(scores=2 * (sentinels.scores - 6) - 5)
    verdict = judge_by_sentinels(examples, examples.scores.clone(), low, None, 3, 10)
    assert verdict.contrast is not None and verdict.contrast < NOTHING
    assert verdict.one_way == () and verdict.tell_doubt() is not None
