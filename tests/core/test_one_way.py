"""Labels that went wrong by a rule, told from classes that are alike, hard or hardly learnt."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
import torch
from torch import Tensor

from oddly.core import Verdict
from oddly.core.confusion import MOST_CLASSES
from oddly.core.judging import judge_by_sentinels
from oddly.core.learnt import NOTHING
from oddly.core.one_way import condemn_, find_levels, find_one_way, tell_one_way
from oddly.core.sentinels import Scored

Group = tuple[int, int, int, float]
"""How many examples, of which label, with which rival and score."""


def scored(groups: Iterable[Group]) -> Scored:
    counts, *columns = zip(*groups, strict=True)
    labels, rivals, scores = (
        torch.tensor(column).repeat_interleave(torch.tensor(counts)) for column in columns
    )
    return Scored(scores.float(), labels, rivals)


def sound(classes: int, count: int = 50) -> list[Group]:
    """Right labels, with a rival far below."""
    return [(count, k, (k + 2) % classes, -3.0) for k in range(classes)]


def shifted(classes: Iterable[int], of: int, count: int = 20, score: float = 0.3) -> list[Group]:
    """Images of each class's predecessor among its own."""
    return [(count, k, (k - 1) % of, score) for k in classes]


def test_every_class_that_holds_images_of_one_other() -> None:
    found = find_one_way(scored(sound(5) + shifted(range(5), 5)), 5)
    assert found == ((0, 4), (1, 0), (2, 1), (3, 2), (4, 3))


def test_so_many_classes_must_be_confused_that_it_is_no_chance() -> None:
    """0.3 of ten by two standard errors are 5.9."""
    five, six = (scored(sound(10) + shifted(range(n), 10)) for n in (5, 6))
    assert find_one_way(five, 10) == ()
    assert find_one_way(six, 10) == tuple((k, (k - 1) % 10) for k in range(6))


def test_where_enough_stand_out_the_less_certain_go_along() -> None:
    """20 are 2.04 standard errors more than 9, and 1.8 more than 10; 21 are of another rival."""

    def groups(others: list[int]) -> list[Group]:
        more = [(n, k, (k + 2) % 10, 0.3) for k, n in enumerate(others)]
        return sound(10) + shifted(range(10), 10) + more

    found = find_one_way(scored(groups([9] * 6 + [10, 19, 20, 21])), 10)
    assert list(found) == [(k, (k - 1) % 10) for k in range(8)] + [(9, 1)]
    assert find_one_way(scored(groups([9] * 5 + [10] * 5)), 10) == ()


def test_classes_that_are_alike_are_taken_for_each_other() -> None:
    both_ways = [(20, k, k ^ 1, 0.3) for k in range(10)]
    assert find_one_way(scored(sound(10) + both_ways), 10) == ()


def test_smaller_classes_are_taken_for_the_larger_ones_beside_them() -> None:
    """Ages, say: each half as large as the last, a tenth called younger, a thirtieth older."""
    sizes = [3_200 // 2**k for k in range(6)]
    right = [(n, k, (k + 1) % 6, -3.0) for k, n in enumerate(sizes)]
    younger = [(sizes[k] // 10, k, k - 1, 0.3) for k in range(1, 6)]
    older = [(count // 3, rival, label, 0.3) for count, label, rival, _ in younger]
    assert find_one_way(scored(right + younger + older), 6) == ()
    assert len(find_one_way(scored(right + younger), 6)) == 5  # sizes do not explain none at all


def test_boundaries_a_little_off_are_no_rule_however_many_examples_show_them() -> None:
    """1,400 to 1,000 are 8 standard errors, but just 1.4 times as many."""

    def boundaries(back: int) -> Scored:
        return scored(
            group
            for k in range(10)
            for group in ((1_400, k, (k - 1) % 10, 0.3), (back, k, (k + 1) % 10, 0.3))
        )

    assert find_one_way(boundaries(1_000), 10) == ()
    assert len(find_one_way(boundaries(999), 10)) == 10


def test_a_boundary_has_images_on_both_sides() -> None:
    """Of a hundred whose rival is the class before, half look more like it: no more than usual."""

    def beside(beyond: int) -> Scored:
        near = shifted(range(10), 10, count=100 - beyond, score=-0.3)
        return scored(sound(10) + near + shifted(range(10), 10, count=beyond))

    assert find_one_way(beside(50), 10) == ()
    assert len(find_one_way(beside(51), 10)) == 10


def test_a_hard_class_is_taken_for_several() -> None:
    spread = [(20, k, (k - away) % 10, 0.3) for k in range(10) for away in (1, 3)]
    assert find_one_way(scored(sound(10) + spread), 10) == ()


def test_a_network_that_takes_all_for_one_class_says_nothing() -> None:
    assert find_one_way(scored(sound(10) + [(20, k, 0, 0.3) for k in range(1, 10)]), 10) == ()


def test_labels_that_fit_better_than_the_rival_say_nothing() -> None:
    assert find_one_way(scored(sound(5) + shifted(range(5), 5, score=0.0)), 5) == ()


def test_what_was_never_seen_says_nothing() -> None:
    unseen = [(90, -1, -1, math.nan)]
    pairs = find_one_way(scored(sound(5) + shifted(range(5), 5) + unseen), 5)
    assert len(pairs) == 5
    assert find_one_way(scored(unseen), 5) == ()


def test_classes_without_an_example_are_not_counted() -> None:
    """Six of the ten that there are, of twelve."""
    assert len(find_one_way(scored(sound(10) + shifted(range(6), 10)), 12)) == 6


def test_two_classes_cannot_be_confused_one_way() -> None:
    assert find_one_way(scored(sound(2) + shifted([1], 2)), 2) == ()


def test_with_very_many_classes_nothing_is_looked_for() -> None:
    many = scored(sound(5) + shifted(range(5), 5))
    assert find_one_way(many, MOST_CLASSES) == find_one_way(many, 5)
    assert find_one_way(many, MOST_CLASSES + 1) == ()


def levels(groups: Iterable[Group], classes: int = 10) -> list[float]:
    examples = scored(groups)
    pairs = find_one_way(examples, classes)
    assert pairs
    return find_levels(examples, pairs, classes).tolist()


def level(groups: Iterable[Group], classes: int = 10) -> float:
    (common,) = set(levels(groups, classes))
    return common


def rule(count: int = 20) -> list[Group]:
    """Far beyond their rivals, so that a gap of a half between images is none."""
    return shifted(range(10), 10, count, score=2.0)


def learnt(below: int, other: int, classes: Iterable[int] = range(10)) -> list[Group]:
    """So many whose label, wrong or not, fits better than the class before, or than another."""
    both = ((below, 1, -0.5), (other, 4, -0.4), (1, 4, -0.6))
    return [(count, k, (k - away) % 10, score) for k in classes for count, away, score in both]


def test_where_both_names_look_good_images_with_the_rule_s_rival_go_below_0_as_well() -> None:
    """150 that have it to 70 with another, but not 140, which is just twice."""
    assert level(rule(300) + learnt(150, 70)) == -0.5
    assert level(rule(300) + learnt(140, 70)) == 0.0


def test_what_may_be_chance_goes_no_further() -> None:
    """170 to twice 70 in all are 1.4 standard errors, 160 are 0.95."""
    assert level(rule() + learnt(17, 7)) == -0.5
    assert level(rule() + learnt(16, 7)) == 0.0


def test_no_level_lies_above_0() -> None:
    """The rival need only look likelier, however many others look like another class."""
    others = [(9, k, (k - 4) % 10, 0.2) for k in range(10)]
    assert level(rule() + others) == 0.0


@pytest.mark.parametrize(("alike", "expected"), [(4, 0.0), (6, -0.5)])
def test_a_few_pairs_that_are_alike_by_nature_do_not_decide_for_all(
    alike: int, expected: float
) -> None:
    """All pairs together would go down to -0.5 either way."""
    many, few = learnt(100, 0, range(alike)), learnt(10, 9, range(alike, 10))
    assert level(rule(300) + many + few) == expected


def test_nor_do_most_pairs_with_few_images_against_all_together() -> None:
    """Six would go down to -0.5, four only to -0.2, and these have more to lose."""
    all_of_them = [(15, k, (k - 1) % 10, -0.2) for k in range(10)]
    few, many = learnt(3, 0, range(6)), learnt(3, 10, range(6, 10))
    assert level(rule() + all_of_them + few + many) == pytest.approx(-0.2)


def test_the_class_that_its_own_images_are_called_is_no_other_rival() -> None:
    """Right labels have it as rival by the rule: it says nothing about what they look like."""
    right = [(200, k, (k + 1) % 10, -0.4) for k in range(10)]
    assert level(rule() + learnt(17, 7) + right) == -0.5


def test_a_pair_that_only_leans_to_its_rival_stays_at_0() -> None:
    """Most of its images lie below 0: the two may just be alike. So does a class without a pair."""
    leaning = [(10, 9, 8, 2.0), (40, 9, 8, -0.5), (5, 9, 5, -0.4)]
    nine = shifted(range(1, 9), 10, score=2.0) + learnt(17, 7, range(1, 9))
    assert levels(nine + leaning + [(30, 0, 4, -3.0)]) == [-0.5] * 8 + [0.0]


def test_where_no_other_rival_can_tell_nothing_goes_below_0() -> None:
    both = [(17, k, (k - 1) % 10, -0.5) for k in range(10)]
    assert level(rule() + both) == 0.0
    three = [(n, k, (k - 1) % 3, score) for k in range(3) for n, score in ((60, 2.0), (17, -0.5))]
    assert level(three, 3) == 0.0  # the third is what its own images are called


def test_it_stops_where_right_labels_make_a_hill_of_their_own() -> None:
    """Classes in a row: at -3 as many have the rule's rival as another class beside them."""
    slope = [(n, k, (k - 1) % 10, -at) for k in range(10) for n, at in ((9, 0.5), (4, 1), (1, 1.5))]
    hill = [(30, k, (k - 1) % 10, -3.0) for k in range(10)]
    other = [(1, k, (k - 4) % 10, -0.1) for k in range(10)]
    assert level(rule(50) + slope + other) == -1.5
    assert -2.5 < level(rule(50) + slope + other + hill) <= -1.5


def test_such_a_pair_reaches_the_threshold_from_that_level_on() -> None:
    examples = Scored(*map(torch.tensor, ([1.5, 0.5, 0.4, 1.5], [0, 0, 0, 1], [1, 1, 1, 0])))
    shares = condemn_(
        examples, ((0, 1),), torch.zeros(1), torch.tensor([[0.0, 0.5], [0.5, 0.0]]), 2.0
    )
    assert shares == (0.5, 0.75)  # two reach it, and all of the pair are suspicious
    assert examples.scores.tolist() == pytest.approx([3.0, 2.0, 1.9, 1.5])
    lower = Scored(*map(torch.tensor, ([0.1, 0.0], [0, 0], [1, 1])))
    condemn_(lower, ((0, 1),), torch.tensor([-0.4]), torch.full((2, 2), 0.5), 2.0)
    assert lower.scores.tolist() == pytest.approx([2.0, 1.9])


def test_what_lay_above_it_already_is_not_lowered() -> None:
    examples = Scored(torch.tensor([3.5]), torch.tensor([0]), torch.tensor([1]))
    condemn_(examples, ((0, 1),), torch.zeros(1), torch.full((2, 2), 3.0), 2.0)
    assert examples.scores.item() == 3.5


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
        "labels seem to have gone wrong by a rule: 10 classes hold images of one other class,"
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
