"""Labels that went wrong by a rule, told from classes that are alike, hard or hardly learnt."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
import torch
from torch import Tensor

from oddly.core.sentinels.confusion import MOST_CLASSES
from oddly.core.sentinels.one_way import (
    condemn_,
    find_levels,
    find_one_way,
    share_held,
    share_wrong,
)
from oddly.core.sentinels.planting import Scored
from tests.core.sentinels.groups import Group, scored


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
    examples = scored((500, *one) for one in ((0, 1, 1.5), (0, 1, 0.5), (0, 1, 0.4), (1, 0, 1.5)))
    shares = condemn(examples, [(0, 1)], torch.tensor([[0.0, 0.5], [0.5, 0.0]]), 2.0)
    assert shares == (0.5, 0.75)  # two reach it, and all of the pair are suspicious
    assert examples.scores[::500].tolist() == pytest.approx([3.0, 2.0, 1.9, 1.5])
    lower = Scored(*map(torch.tensor, ([0.1, 0.0], [0, 0], [1, 1])))
    condemn_(lower, ((0, 1),), torch.tensor([-0.4]), torch.full((2, 2), 0.5), 2.0)
    assert lower.scores.tolist() == pytest.approx([2.0, 1.9])


def test_as_many_more_may_be_wrong_as_no_pair_holds() -> None:
    """Of 100 the other name is 60's rival: 20 are as many of 33. Of 30 beyond it is 27's."""
    wrong = [(2_000, k, (k - by) % 5, 0.3) for k in range(5) for by in (1, 3)]
    right = [(n, k, (k + by) % 5, -1.0) for k in range(5) for n, by in ((4_000, 1), (2_000, 2))]
    assert most_of(wrong + right) == pytest.approx((0.2, 0.2 / 0.6 + error(0.2)))
    wrong = [(n, k, (k - by) % 5, 0.3) for k in range(5) for n, by in ((2_700, 1), (300, 3))]
    right = [(7_000, k, (k + 2) % 5, -1.0) for k in range(5)]
    assert most_of(wrong + right)[1] == pytest.approx(0.3 + error(0.27))
    found, most = most_of(wrong + right, pairs=4)  # the fifth class may have gone wrong as well
    assert (found, most) == pytest.approx((0.216, 0.27 / 0.9 + error(0.216)))


def test_scores_that_were_shifted_are_beyond_their_rival_by_what_they_were() -> None:
    """All lie at 0.3 above the shift, or below it: half of those above have the rule's rival."""
    groups = [(1_000, k, (k - by) % 5, 2.3) for k in range(5) for by in (1, 3)]
    groups += [(8_000, k, (k + 2) % 5, 1.0) for k in range(5)]
    pairs = [(k, (k - 1) % 5) for k in range(5)]
    shifts = torch.full((5, 5), 2.0)
    found, most = condemn(scored(groups), pairs, shifts, 2.1)
    assert (found, most) == pytest.approx((0.2, 0.3 + error(0.2)))


def test_no_more_than_all_may_be_wrong() -> None:
    groups = [(3, k, (k - 1) % 5, 0.3) for k in range(5)]
    groups += [(97, k, (k + 2) % 5, 0.2) for k in range(5)]
    assert most_of(groups)[1] == 1.0


def error(share: float, count: int = 50_000) -> float:
    return 2 * math.sqrt(share * (1 - share) / count)


def test_where_each_class_was_looked_at_chance_alone_is_added() -> None:
    examples = scored([(500, 0, 1, 0.5), (500, 0, 1, -0.5), (1_000, 1, 0, -3.0)])
    raised = condemn_(examples, [(0, 1)], torch.zeros(1), torch.zeros(2, 2), 2.0)
    found, most = share_wrong(examples, raised, 2.0, None)
    assert (found, most) == pytest.approx((0.25, 0.25 + error(0.25, 2_000)))


def most_of(groups: list[Group], pairs: int = 5) -> tuple[float, float]:
    ruled = [(k, (k - 1) % 5) for k in range(pairs)]
    return condemn(scored(groups), ruled, torch.zeros(5, 5), 2.0)


def condemn(
    examples: Scored, pairs: list[tuple[int, int]], shifts: Tensor, threshold: float
) -> tuple[float, float]:
    held = share_held(examples, pairs, shifts)
    raised = condemn_(examples, pairs, torch.zeros(len(pairs)), shifts, threshold)
    return share_wrong(examples, raised, threshold, held)


def test_what_lay_above_it_already_is_not_lowered() -> None:
    examples = Scored(torch.tensor([3.5]), torch.tensor([0]), torch.tensor([1]))
    condemn_(examples, ((0, 1),), torch.zeros(1), torch.full((2, 2), 3.0), 2.0)
    assert examples.scores.item() == 3.5
