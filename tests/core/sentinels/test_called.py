"""Classes of which many images are called another, told from hard ones and from alike ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from oddly.core import Verdict
from oddly.core.judging import judge_by_sentinels
from oddly.core.sentinels.called import find_called, halve, tell_called
from oddly.core.sentinels.confusion import MOST_CLASSES
from oddly.core.sentinels.learnt import SURE
from oddly.core.sentinels.planting import Scored
from tests.core.sentinels.groups import Group, scored

EACH = 400  # images of a class


def call(share: float, seed: int = 0) -> tuple[Scored, Scored, Tensor]:
    """Ten classes; that share of class 3 is called 7, so that all of it look like 7 as well."""
    generator = torch.Generator().manual_seed(seed)
    true = torch.arange(10 * EACH) % 10
    wrong = (true == 3) & (torch.rand(len(true), generator=generator) < share)
    labels = torch.where(wrong, 7, true)
    both_names = float(np.log((1 - share) / share)) if share else 5.0
    scores = torch.where(true == 3, -both_names, -5.0)
    scores = (
        torch.where(wrong, both_names, scores) + torch.randn(len(true), generator=generator) / 2
    )
    near = torch.where(true == 3, 10 - labels, (labels + 4) % 10)
    planted = torch.arange(400) % 10
    high = 6 + torch.randn(400, generator=generator)
    return Scored(scores, labels, near), Scored(high, planted, (planted + 5) % 10), wrong


def judge(share: float = 0.4, **asked: Any) -> tuple[Verdict, Tensor]:
    examples, sentinels, wrong = call(share)
    options = {"percentile": None, "epoch": 3, "num_classes": 10, **asked}
    return judge_by_sentinels(examples, examples.scores.clone(), sentinels, **options), wrong


@pytest.mark.parametrize("share", [0.2, 0.3, 0.4])
def test_one_class_of_ten_is_found_and_its_images_go(share: float) -> None:
    verdict, wrong = judge(share)
    assert verdict.called == ((7, 3),) and verdict.one_way == ()
    removed = ~verdict.keep
    assert int((removed & wrong).sum()) > 0.7 * int(wrong.sum())
    assert int((removed & ~wrong).sum()) < 0.1 * int(wrong.sum())
    assert verdict.noise_rate is not None
    rate, low, high = verdict.noise_rate
    assert rate == pytest.approx(float(removed.float().mean()))
    assert low <= float(wrong.float().mean()) <= high < 0.1


def test_nobody_else_sees_them() -> None:
    """A percentile of random labels lies above all of them."""
    verdict, wrong = judge(percentile=6.0)
    assert verdict.called == ()
    assert not (~verdict.keep & wrong).any()


def test_a_cut_that_the_user_chose_is_left_alone() -> None:
    assert judge(target_precision=0.9)[0].called == ()


def test_right_labels_and_few_wrong_ones_call_nothing() -> None:
    assert judge(0.0)[0].called == () and judge(0.05)[0].called == ()


def test_what_has_hardly_learnt_is_not_asked() -> None:
    examples, sentinels, _ = call(0.4)
    near = sentinels._replace(scores=4 * (sentinels.scores - 5.5))
    verdict = judge_by_sentinels(examples, examples.scores.clone(), near, None, 3, 10)
    assert verdict.contrast is not None and verdict.contrast < SURE
    assert verdict.called == ()


def hard(spread: bool) -> list[Group]:
    """Class 0 of five is hard; 40 of its images look like another, 40 images like it."""
    others = [(100, k, (k + 2) % 5, -5.0) for k in range(1, 5)]
    rivals = range(1, 5) if spread else [1] * 4
    surest = [(15, 0, rival, -0.5) for rival in rivals]
    return [*others, *surest, (40, 0, 1, 0.5), (40, 1, 0, 0.5)]


def test_a_hard_class_has_many_rivals() -> None:
    assert find_called(scored(hard(spread=False)), 0.0, 5) == ((1, 0),)
    assert find_called(scored(hard(spread=True)), 0.0, 5) == ()


def test_the_surest_of_an_alike_class_are_sure() -> None:
    easy = [(25, 0, 1, -6.0), (35, 0, 1, -0.5), (40, 0, 1, 0.5), (40, 1, 0, 0.5)]
    others = [(100, k, (k + 2) % 5, -5.0) for k in range(1, 5)]
    assert find_called(scored(easy + others), 0.0, 5) == ()


OTHERS: list[Group] = [(100, k, (k + 2) % 5, -5.0) for k in range(1, 5)]


def test_few_images_are_chance() -> None:
    """Of ten images of a class two under another name are .2, less a standard error .06."""
    few: list[Group] = [*OTHERS, (10, 0, 1, -0.5)]
    found = [find_called(scored([*few, (n, 1, 0, 0.5)]), 0.0, 5) for n in (2, 3)]
    assert found == [(), ((1, 0),)]
    assert find_called(scored([*OTHERS, (9, 0, 1, -0.5), (9, 1, 0, 0.5)]), 0.0, 5) == ()


@pytest.mark.parametrize(("others", "found"), [(0, True), (40, False)])
def test_the_more_other_rivals_the_less_it_counts(others: int, found: bool) -> None:
    """A score of -2 is a likelihood of .12; six in ten of it are .07."""
    own = [(60, 0, 1, -2.0), (others, 0, 2, -1.9), (25, 1, 0, 0.5)]
    groups = [group for group in [*OTHERS, *own] if group[0]]
    assert bool(find_called(scored(groups), 0.0, 5)) is found


def test_the_surer_half_says_which_class() -> None:
    own = [(50, 0, 1, -1.0), (60, 0, 2, -0.5), (40, 1, 0, 0.5)]
    assert find_called(scored([*OTHERS, *own]), 0.0, 5) == ((1, 0),)


def test_a_quarter_of_a_class_are_its_surest() -> None:
    """Ten of them are sure; of the 25 surest the mean likelihood is .19."""
    own = [(10, 0, 1, -6.0), (90, 0, 1, -0.8), (40, 1, 0, 0.5)]
    assert find_called(scored([*OTHERS, *own]), 0.0, 5) == ((1, 0),)


def test_no_likelihood_is_more_than_one() -> None:
    """A score of 2 is .88: less than .93, which random labels might make of it."""
    own = [(100, 0, 1, 2.0), (200, 1, 0, 2.0), (300, 1, 2, -5.0), (100, 2, 1, -5.0)]
    assert find_called(scored(own), 1.7, 3) == ()
    assert find_called(scored(own), 1.5, 3) == ((1, 0),)


@pytest.mark.parametrize(("score", "found"), [(-5.0, True), (-1.0, False)])
def test_more_is_asked_where_the_other_class_is_no_surer(score: float, found: bool) -> None:
    """At -2.2 the surest are called so with a likelihood of .10, the others at -1.5."""
    own = [(25, 0, 1, -2.2), (75, 0, 1, -1.5), (25, 1, 0, 0.5)]
    groups = [(100, 1, 2, score), (100, 2, 3, -5.0), (100, 3, 2, -5.0), *own]
    assert bool(find_called(scored(groups), 0.0, 4)) is found


def test_no_name_loses_all_who_bear_it() -> None:
    own = [(100, 0, 1, -0.5), (100, 2, 3, -5.0), (100, 3, 2, -5.0), (40, 1, 0, 0.5)]
    assert find_called(scored(own), 0.0, 4) == ()
    assert find_called(scored([*own, (1, 1, 0, -2.0)]), 0.0, 4) == ((1, 0),)


def test_classes_that_change_places() -> None:
    both = [(70, 0, 1, -0.8), (30, 1, 0, 0.8), (70, 1, 0, -0.8), (30, 0, 1, 0.8)]
    others = [(100, k, (k + 1) % 5, -5.0) for k in range(2, 5)]
    assert find_called(scored(both + others), 0.0, 5) == ((1, 0), (0, 1))


def test_random_labels_call_every_class_another() -> None:
    """Of two classes .3 are called the other: .22 more than .08, were they not all random."""
    both = scored([(70, 0, 1, -0.8), (30, 1, 0, 0.8), (70, 1, 0, -0.8), (30, 0, 1, 0.8)])
    assert find_called(both, 0.1, 2) == ((1, 0), (0, 1))
    assert find_called(both, 0.2, 2) == ()
    assert find_called(both, 0.2, 4) == ((1, 0), (0, 1))  # of which a third is called each other


def test_so_many_classes_are_not_looked_at() -> None:
    both = scored([(70, 0, 1, -0.8), (30, 1, 0, 0.8), (70, 1, 2, -5.0)])
    assert find_called(both, 0.0, MOST_CLASSES) and not find_called(both, 0.0, MOST_CLASSES + 1)


def test_a_class_without_images_is_passed_over() -> None:
    found = find_called(scored([(60, 0, 4, -0.5), (40, 4, 0, 0.5), (100, 4, 1, -5.0)]), 0.0, 6)
    assert found == ((4, 0),)


def test_half_way_from_wrong_labels_to_right_ones() -> None:
    """Images of 0 under their name lie at −0.8, so those called 1 at 0.8; those of 1 at −2."""
    own: list[Group] = [(20, 0, 1, -3.0), (20, 0, 1, -0.8), (20, 0, 1, -0.1)]
    groups: list[Group] = [*own, (50, 1, 2, -2.0), (10, 2, 0, -0.2)]
    levels = halve(scored(groups), [(1, 0), (2, 0)], 3)
    assert levels.tolist() == pytest.approx([-0.6, 0.0])


def test_it_is_told_with_the_names_of_classes() -> None:
    verdict, _ = judge()
    names = [f"kind {k}" for k in range(10)]
    assert verdict.cautions(names) == [
        "labels seem to be systematically wrong: many images of 1 class have the label of another"
        " class (kind 3 labelled kind 7); also check the examples kept under these labels"
    ]
    assert "(3 labelled 7)" in str(verdict)
    assert tell_called([]) is None
    more = tell_called([(k + 1, k) for k in range(7)])
    assert more is not None
    assert "many images of 7 classes have the label of another class (0 labelled 1, 1" in more
    one_label = tell_called([(9, 0), (9, 1)])  # two classes that are mislabelled, under one label
    assert one_label is not None and "many images of 2 classes" in one_label


def test_raised_scores_are_not_compared_with_random_labels() -> None:
    verdict, _ = judge()
    assert verdict.rivals is not None
    of_pair = (verdict.labels == 7) & (verdict.rivals == 3)
    assert verdict.percentiles.isnan().tolist() == of_pair.tolist()


def test_it_survives_a_checkpoint_and_one_of_before_has_none() -> None:
    state = judge()[0].state_dict()
    assert Verdict.from_state(state).called == ((7, 3),)
    del state["called"]
    assert Verdict.from_state(state).called == ()
