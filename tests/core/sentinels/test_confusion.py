"""What frequent confusions and hard classes do to a score: by hand, and on drawn data."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from oddly.core.judging import judge_by_sentinels
from oddly.core.sentinels import confusion as module
from oddly.core.sentinels import cut
from oddly.core.sentinels.confusion import (
    class_offsets,
    find_shifts,
    log_ratios,
    look_up,
    pair_shifts,
    shift_,
    size_shifts,
)
from oddly.core.sentinels.planting import Scored
from oddly.core.verdict import Verdict

NAN = torch.nan


def scored(scores: list[float], labels: list[int], rivals: list[int]) -> Scored:
    return Scored(torch.tensor(scores), torch.tensor(labels), torch.tensor(rivals))


def draw(
    num_classes: int, noise: float, confused: float = 0.0, size: int = 20_000, seed: int = 0
) -> tuple[Scored, Scored, Tensor, Tensor]:
    """Examples, 1,000 sentinels, and which examples are wrong, and which are confused.

    Margins are -3 ± 1 if right, 2 ± 1 if wrong. Of class 0, the share `confused` carries label 1
    with margins of 0.5 ± 1: a network that sees it often does not find it that wrong.
    """
    generator = torch.Generator().manual_seed(seed)

    def other_than(labels: Tensor) -> Tensor:
        shift = torch.randint(1, num_classes, labels.shape, generator=generator)
        return (labels + shift) % num_classes

    true = torch.randint(num_classes, (size,), generator=generator)
    given = torch.where(torch.rand(size, generator=generator) < noise, other_than(true), true)
    pick = (true == 0) & (given == 0) & (torch.rand(size, generator=generator) < confused)
    given[pick] = 1
    wrong = given != true
    scores = torch.where(wrong, 2.0, -3.0) - 1.5 * pick + torch.randn(size, generator=generator)
    examples = Scored(scores, given, torch.where(wrong, true, other_than(given)))
    hidden = torch.randint(num_classes, (1_000,), generator=generator)
    margins = 2 + torch.randn(1_000, generator=generator)
    return examples, Scored(margins, other_than(hidden), hidden), wrong, pick


def off_diagonal(shifts: Tensor) -> Tensor:
    """A label is never its own rival."""
    return shifts[~torch.eye(len(shifts), dtype=torch.bool)]


def share_found(scores: Tensor, sentinels: Tensor, which: Tensor) -> float:
    """Of `which`, those above the sentinels' sixth percentile."""
    return float((scores[which] >= sentinels.quantile(0.06)).float().mean())


def test_class_offsets_by_hand() -> None:
    """Mean 3. Class 0: (1 + 2 - 2·3) / 102; class 1: (6 - 3) / 101; class 2: none."""
    sentinels = scored([1.0, 2.0, 6.0], [0, 0, 1], [1, 2, 0])
    expected = [-3 / 102, 3 / 101, 0.0]
    assert class_offsets(sentinels, 3).tolist() == pytest.approx(expected)


def labels_of(*sizes: int) -> Tensor:
    return torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))


def test_what_counts_less_against_smaller_classes_by_hand() -> None:
    """Ten are added to each: 100, 1,000 and 20; a fifth of a logarithm from 9 to 1 on."""
    found = size_shifts(labels_of(90, 990, 10), 3)
    ten, fifty, five = (0.2 * math.log(times) for times in (10, 50, 5))
    expected = torch.tensor([[0, -ten, 0], [0, 0, 0], [-five, -fifty, 0]])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("sizes", "share"), [((90, 289), 0), ((90, 510), 0.5), ((90, 890), 1)])
def test_classes_alike_in_size_are_left_alone(sizes: tuple[int, int], share: float) -> None:
    """Up to 3 to 1; half counts at 3√3, and all from 9 to 1 on."""
    larger = math.log((sizes[1] + 10) / (sizes[0] + 10))
    found = float(size_shifts(labels_of(*sizes), 2)[0, 1])
    assert found == pytest.approx(-0.2 * share * larger, abs=0.01)
    assert found == 0 or share


def test_sizes_where_there_are_too_many_classes_for_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the average label: (1,000 log 1,010 + 90 log 100) / 1,090 is 6.73."""
    monkeypatch.setattr(module, "MOST_CLASSES", 1)
    found = size_shifts(labels_of(1_000, 90), 2)
    assert found.flatten().tolist() == pytest.approx([0, 0.2 * (math.log(100) - 6.7268)], abs=1e-3)


@pytest.mark.parametrize("most", [1, 1_000])
def test_sizes_of_nothing_and_of_classes_without_an_example(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CLASSES", most)
    assert not size_shifts(torch.full((9,), -1, dtype=torch.int16), 3).any()  # never seen
    assert not size_shifts(torch.empty(0, dtype=torch.int16), 3).any()
    assert not size_shifts(labels_of(500, 0, 500), 3).any()


def test_only_what_speaks_for_a_larger_class_counts_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20,000 in three classes, the last keeps one in forty; a percentile is named."""
    examples, sentinels, _, _ = draw(3, 0.2)
    few = (examples.labels != 2) | (torch.arange(len(examples.labels)) % 40 == 0)

    def judge() -> Verdict:
        some = Scored(*(column[few].clone() for column in examples))
        return judge_by_sentinels(some, some.scores.clone(), sentinels, 6.0, 3, 3)

    verdict = judge()
    monkeypatch.setattr(module, "SIZES", 0.0)
    without = judge()
    # Sentinels are as they were; of those that hit the true label a few fewer are expected.
    assert verdict.threshold == pytest.approx(without.threshold, abs=0.005)
    lower, small = without.scores - verdict.scores, verdict.labels == 2
    assert bool((lower[small] > 0.5).all()) and bool(
        (lower[small] < 0.8).all()
    )  # a fifth of log 25
    assert bool((lower[~small] >= 0).all()) and bool((lower[~small] < 0.01).all())
    assert without.keep[small].sum() + 5 < verdict.keep[small].sum()
    assert without.keep[~small].sum() == pytest.approx(int(verdict.keep[~small].sum()), abs=20)


def test_with_many_sentinels_the_offset_is_the_classs_own() -> None:
    """A hundred of a class count half; ten thousand nearly whole."""
    labels = torch.arange(2).repeat_interleave(100)
    sentinels = Scored(torch.where(labels == 0, 1.0, 3.0), labels, 1 - labels)
    assert class_offsets(sentinels, 2).tolist() == pytest.approx([-0.5, 0.5])
    many = Scored(*(column.repeat(100) for column in sentinels))
    assert class_offsets(many, 2).tolist() == pytest.approx([-1.0, 1.0], abs=0.011)


def test_look_up_by_label_and_rival_or_by_label_alone() -> None:
    examples = scored([0.0, 0.0, 0.0], [0, 1, 1], [1, 0, 2])
    pairs = torch.arange(9.0).view(3, 3)
    assert look_up(pairs, examples).tolist() == [1.0, 3.0, 5.0]
    assert look_up(torch.tensor([[7.0], [8.0], [9.0]]), examples).tolist() == [7.0, 8.0, 8.0]


@pytest.mark.parametrize("chunk", [1, 3, 10, 1000])
@pytest.mark.parametrize("columns", [1, 4])
def test_shifted_in_parts_is_shifted_alike(
    chunk: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(4, (10,), generator=generator, dtype=torch.int16)
    examples = Scored(torch.randn(10, generator=generator), labels, (labels + 1) % 4)
    shifts = torch.randn(4, columns, generator=generator)
    expected = examples.scores + look_up(shifts, examples)
    monkeypatch.setattr(module, "CHUNK", chunk)
    shift_(examples, shifts)
    assert torch.equal(examples.scores, expected)


def test_an_example_never_seen_stays_without_a_score() -> None:
    examples = scored([1.0, NAN], [0, -1], [1, -1])
    shift_(examples, torch.ones(2, 2))
    assert examples.scores[0] == 2.0
    assert examples.scores[1].isnan()


@pytest.mark.parametrize(
    ("num_classes", "noise", "gain"),
    [(3, 0.2, 0.2), (10, 0.2, 0.15), (100, 0.2, 0.05), (3, 0.0, 0.01), (10, 0.0, 0.1)],
)
def test_a_frequent_confusion_gains(num_classes: int, noise: float, gain: float) -> None:
    """40 % of class 0 carry label 1, of which half are found by the score alone."""
    examples, sentinels, wrong, pick = draw(num_classes, noise, confused=0.4)
    shifts = pair_shifts(examples, sentinels, 6.0, num_classes)
    others = off_diagonal(shifts)
    assert shifts[1, 0] == others.max()
    assert shifts[1, 0] > 0
    assert (others == others.max()).sum() == 1
    before = share_found(examples.scores, sentinels.scores, pick)
    assert before == pytest.approx(0.53, abs=0.07)
    shifted, planted = (g.scores + look_up(shifts, g) for g in (examples, sentinels))
    assert share_found(shifted, planted, pick) > before + gain
    assert share_found(shifted, planted, ~wrong) < 0.005  # and no right label is hit instead


@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.4])
def test_random_noise_and_clean_data_have_no_frequent_confusion(
    noise: float, num_classes: int
) -> None:
    """Beside margins that deviate by 1: next to nothing."""
    examples, sentinels, _, _ = draw(num_classes, noise)
    shifts = off_diagonal(pair_shifts(examples, sentinels, 6.0, num_classes))
    assert shifts.abs().max() < 0.25
    assert shifts.abs().mean() < 0.1


def test_with_two_classes_the_frequent_direction_gains_and_the_other_loses() -> None:
    examples, sentinels, _, _ = draw(2, 0.05, confused=0.3)
    shifts = pair_shifts(examples, sentinels, 6.0, 2)
    assert shifts[1, 0] > 0.1
    assert shifts[0, 1] < -0.1


@pytest.mark.parametrize("rare", [0.02, 0.2])
def test_an_unbalanced_class_is_not_taken_for_a_confusion(rare: float) -> None:
    """Uniform noise on 98 % class 0: most wrong labels have true class 0, as they must."""
    generator = torch.Generator().manual_seed(0)
    size = 40_000
    true = (torch.rand(size, generator=generator) < rare).long()
    wrong = torch.rand(size, generator=generator) < 0.1
    given = torch.where(wrong, 1 - true, true)
    scores = torch.where(wrong, 2.0, -3.0) + torch.randn(size, generator=generator)
    hidden = true[:1000]
    sentinels = Scored(2 + torch.randn(1000, generator=generator), 1 - hidden, hidden)
    examples = Scored(scores, given, 1 - given)
    shifts = pair_shifts(examples, sentinels, 6.0, 2)
    shifted, planted = (g.scores + look_up(shifts, g) for g in (examples, sentinels))
    for label in (0, 1):
        assert share_found(shifted, planted, wrong & (given == label)) > 0.9
        assert share_found(shifted, planted, ~wrong & (given == label)) < 0.01


def test_the_largest_ratio_that_is_believed_bounds_the_shifts() -> None:
    """Nothing but one confusion, 4,000 times: its ratio would be 90, of which e² are believed."""
    examples, sentinels, _, pick = draw(10, 0.0, confused=1.0, size=40_000)
    assert pick.sum() > 3_500
    shifts = pair_shifts(examples, sentinels, 6.0, 10)
    others = off_diagonal(shifts)
    assert shifts[1, 0] == others.max()
    assert shifts.isfinite().all()
    assert others.abs().max() < 10


def test_few_wrong_labels_move_little() -> None:
    """One pair, three times: ten are credited to every pair beforehand."""
    examples, sentinels, _, _ = draw(10, 0.0, size=2_000)
    examples.scores[:3], examples.labels[:3], examples.rivals[:3] = 3.0, 1, 0
    assert off_diagonal(pair_shifts(examples, sentinels, 6.0, 10)).abs().max() < 0.1


def test_found_shifts_are_those_of_class_and_pair() -> None:
    """The pairs are counted after the classes' offsets are taken off."""
    examples, sentinels, _, _ = draw(10, 0.2, confused=0.4)
    hard = sentinels._replace(scores=sentinels.scores + (sentinels.labels == 5))
    offsets = class_offsets(hard, 10)
    assert offsets[5] > 0.3
    levelled = [g._replace(scores=g.scores - offsets[g.labels]) for g in (examples, hard)]
    expected = pair_shifts(*levelled, 6.0, 10) - offsets[:, None]
    torch.testing.assert_close(find_shifts(examples, hard, 6.0, 10), expected)


def test_examples_without_a_score_do_not_count() -> None:
    examples, sentinels, _, _ = draw(10, 0.2, confused=0.4)
    unseen = Scored(torch.full((500,), NAN), torch.full((500,), -1), torch.full((500,), -1))
    both = Scored(*(torch.cat(pair) for pair in zip(examples, unseen, strict=True)))
    expected = find_shifts(examples, sentinels, 6.0, 10)
    torch.testing.assert_close(find_shifts(both, sentinels, 6.0, 10), expected)


def test_small_integers_do_not_overflow() -> None:
    """Pairs of 300 classes number 90,000: more than int16, which labels are stored in, can hold."""
    examples, sentinels, _, _ = draw(300, 0.2, confused=0.4)
    short = Scored(examples.scores, examples.labels.short(), examples.rivals.short())
    expected = find_shifts(examples, sentinels, 6.0, 300)
    assert torch.equal(find_shifts(short, sentinels, 6.0, 300), expected)


@pytest.mark.parametrize(("num_classes", "columns"), [(1_000, 1_000), (1_001, 1)])
def test_beyond_a_thousand_classes_labels_alone_count(num_classes: int, columns: int) -> None:
    examples, sentinels, _, _ = draw(num_classes, 0.2, size=2_000)
    shifts = find_shifts(examples, sentinels, 6.0, num_classes)
    assert shifts.shape == (num_classes, columns)
    if columns == 1:
        assert torch.equal(shifts[:, 0], -class_offsets(sentinels, num_classes))


def test_of_very_many_examples_a_random_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    examples, sentinels, _, _ = draw(5, 0.2, confused=0.4)
    whole = find_shifts(examples, sentinels, 6.0, 5)
    monkeypatch.setattr(cut, "PROBED", 5_000)
    few = find_shifts(examples, sentinels, 6.0, 5)
    assert not torch.equal(few, whole)
    assert off_diagonal(few - whole).abs().max() < 0.2
    assert few[1, 0] == off_diagonal(few).max()


def test_ratios_by_hand() -> None:
    """Of 300 examples 30 labelled 0 are truly 1: there are 70, 130 and 100 of the classes.

    Random labels would make 30 wrong ones 30 · (70, 130, 100) / 300 / 2 times of each rival.
    """
    wrong = torch.zeros(3, 3, dtype=torch.float64)
    wrong[0, 1] = 30
    found = log_ratios(wrong, torch.tensor([100.0, 100.0, 100.0], dtype=torch.float64))
    assert found[0].tolist() == pytest.approx(
        [math.log(10 / 13.5), math.log(40 / 16.5), math.log(10 / 15)]
    )
    assert torch.equal(found[1], found[2])
    wrong[0, 1] = 3_000  # some 500 of each other pair are expected; e² times as rare is believed
    assert float(log_ratios(wrong, torch.full((3,), 1e4)).min()) == pytest.approx(-2.0)
