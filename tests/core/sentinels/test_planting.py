"""Which examples become sentinels, what is planted, and what is noted of them."""

from __future__ import annotations

import math

import pytest
import torch

from oddly.core.sentinels.planting import Scored, Sentinels, how_many
from tests.reference import sentinels as twin


def make(num_examples: int = 2000, num_classes: int = 10, seed: int = 0) -> Sentinels:
    return Sentinels(num_examples, num_classes, "ema", seed)


@pytest.mark.parametrize(
    ("num_examples", "expected"),
    [
        (20, 2),  # never more than a tenth
        (1_437, 143),  # the digits: still a tenth
        (10_000, 300),  # no fewer than a percentile needs
        (50_000, 1_000),  # 2 %
        (1_000_000, 5_000),  # no more than a percentile can use
    ],
)
def test_how_many(num_examples: int, expected: int) -> None:
    assert how_many(num_examples) == expected
    sentinels = make(num_examples)
    assert sentinels.indices.shape == sentinels.shifts.shape == (expected,)


@pytest.mark.parametrize("num_examples", [1, 2, 9, 10])
def test_there_is_always_one(num_examples: int) -> None:
    assert how_many(num_examples) == 1


def test_they_are_distinct_sorted_and_in_range() -> None:
    indices = make(3000).indices
    assert torch.equal(indices, indices.unique(sorted=True))
    assert indices[0] >= 0 and indices[-1] < 3000


def test_they_come_from_everywhere() -> None:
    """1,000 of 50,000: in each fifth 200 are expected, with a deviation of 12.5."""
    counts = torch.histc(make(50_000).indices.float(), 5, 0, 50_000)
    assert (counts - 200).abs().max() < 5 * 12.5


@pytest.mark.parametrize("num_classes", [2, 3, 10, 1000])
def test_a_planted_label_is_another_of_the_classes(num_classes: int) -> None:
    sentinels = make(num_classes=num_classes)
    assert sentinels.shifts.min() >= 1 and sentinels.shifts.max() < num_classes
    given = torch.randint(num_classes, (len(sentinels.indices),))
    planted = sentinels.plant(sentinels.indices, given)
    assert (planted != given).all()
    assert planted.min() >= 0 and planted.max() < num_classes


def test_every_other_label_is_as_likely() -> None:
    """1,000 shifts over nine labels: 111 each, with a deviation of 9.9."""
    counts = torch.bincount(make(50_000).shifts, minlength=10)
    assert counts[0] == 0
    assert (counts[1:] - 1000 / 9).abs().max() < 5 * 9.9


def test_the_same_seed_chooses_the_same() -> None:
    first, second, other = make(seed=3), make(seed=3), make(seed=4)
    assert torch.equal(first.indices, second.indices)
    assert torch.equal(first.shifts, second.shifts)
    assert not torch.equal(first.indices, other.indices)


@pytest.mark.parametrize("seed", range(4))
def test_they_are_not_those_that_the_same_seed_corrupts(seed: int) -> None:
    """Noise drawn with the plain seed would hit exactly the sentinels; by chance a tenth of it."""
    sentinels = make(50_000, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    corrupted = torch.randperm(50_000, generator=generator)[:5_000]
    both = torch.isin(sentinels.indices, corrupted).sum().item()
    assert both == pytest.approx(100, abs=50)  # deviation 9.4


def test_the_global_random_stream_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    make()
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("num_classes", [2, 3, 10])
def test_find_and_plant_against_the_twin(num_classes: int) -> None:
    sentinels = make(500, num_classes)
    shifts = dict(zip(sentinels.indices.tolist(), sentinels.shifts.tolist(), strict=True))
    places = {index: place for place, index in enumerate(sentinels.indices.tolist())}
    assert len(shifts) == 50
    generator = torch.Generator().manual_seed(1)
    for index in torch.randperm(500, generator=generator).split(37):
        labels = torch.randint(num_classes, (len(index),), generator=generator)
        place, hit, shift = sentinels.find(index)
        assert hit.tolist() == [i in shifts for i in index.tolist()]
        assert shift.tolist() == [shifts.get(i, 0) for i in index.tolist()]
        assert place[hit].tolist() == [places[i] for i in index.tolist() if i in places]
        expected = twin.plant(shifts, index.tolist(), labels.tolist(), num_classes)
        assert sentinels.plant(index, labels).tolist() == expected


def test_a_batch_without_sentinels_is_left_alone() -> None:
    sentinels = make(500)
    others = torch.arange(500)[~torch.isin(torch.arange(500), sentinels.indices)]
    labels = others % 10
    _, hit, shift = sentinels.find(others)
    assert not hit.any()
    assert not shift.any()
    assert torch.equal(sentinels.plant(others, labels), labels)


def test_a_batch_of_sentinels_alone_and_an_empty_one() -> None:
    sentinels = make(500)
    place, hit, shift = sentinels.find(sentinels.indices.flip(0))
    assert hit.all()
    assert place.tolist() == list(range(49, -1, -1))
    assert torch.equal(shift, sentinels.shifts.flip(0))
    empty = torch.empty(0, dtype=torch.int64)
    assert sentinels.plant(empty, empty).shape == (0,)


def scores_of(sentinels: Sentinels, logits: torch.Tensor, given: torch.Tensor) -> Scored:
    """Observe every example once, in one batch, with the labels that `plant` hands out."""
    index = torch.arange(len(given))
    scored, losses = sentinels.observe(index, logits, sentinels.plant(index, given))
    expected = torch.nn.functional.cross_entropy(logits, given, reduction="none")
    torch.testing.assert_close(losses, expected)
    return scored


@pytest.mark.parametrize("num_classes", [2, 3, 4, 10, 1200])
def test_observed_scores_and_rivals_against_the_twin(num_classes: int) -> None:
    sentinels = make(100, num_classes)
    shifts = dict(zip(sentinels.indices.tolist(), sentinels.shifts.tolist(), strict=True))
    generator = torch.Generator().manual_seed(3)
    logits = 3 * torch.randn(100, num_classes, generator=generator)
    given = torch.randint(num_classes, (100,), generator=generator)
    scored = scores_of(sentinels, logits, given)
    assert torch.equal(scored.labels, given)
    for i in range(100):
        row, label = logits[i].numpy(), int(given[i])
        planted = (label + shifts.get(i, 0)) % num_classes
        margin, rival = twin.given_margin(row, label, planted)
        assert scored.scores[i].item() == pytest.approx(margin, abs=1e-5)
        assert scored.rivals[i] == rival
        if i in shifts:
            place = sentinels.indices.tolist().index(i)
            margin, rival = twin.planted_margin(row, planted)
            assert sentinels.ledger.current[place].item() == pytest.approx(margin, abs=1e-5)
            assert sentinels.rivals[place] == rival


@pytest.mark.parametrize(
    ("logits", "given", "planted", "as_given", "as_planted"),
    [
        ([1.0, 5.0, 2.0, 0.0], 0, 1, (2 - 1, 2), (2 - 5, 2)),  # memorised
        ([4.0, 1.0, 2.0, 3.0], 0, 1, (3 - 4, 3), (4 - 1, 0)),  # understood: given is the rival
        ([0.0, 1.0, 8.0, 3.0], 0, 1, (8 - 0, 2), (8 - 1, 2)),  # both labels are wrong
        ([4.0, 5.0, 2.0, 2.0], 0, 1, (2 - 4, None), (4 - 5, 0)),  # 2 and 3 tie
        ([1.0, 1.0, 1.0, 1.0], 0, 1, (0, None), (0, None)),  # nothing known yet
        ([1.0, 5.0, 2.0], 0, 1, (2 - 1, 2), (2 - 5, 2)),  # one class is left
        ([1.0, 5.0], 0, 1, (5 - 1, 1), (1 - 5, 0)),  # the planted label is all there is
    ],
)
def test_a_sentinels_two_margins_and_rivals_by_hand(
    logits: list[float],
    given: int,
    planted: int,
    as_given: tuple[float, int | None],
    as_planted: tuple[float, int | None],
) -> None:
    """Rival None: any class that ties, but neither of the two labels."""
    sentinels = make(10, len(logits))  # one of them
    sentinels.shifts.fill_(planted - given)
    row, index = torch.tensor([logits]), sentinels.indices
    scored, _ = sentinels.observe(index, row, torch.tensor([planted]))
    assert (scored.scores.item(), scored.labels.item()) == (as_given[0], given)
    assert sentinels.ledger.current.item() == as_planted[0]
    for rival, label, expected in (
        (int(scored.rivals), given, as_given),
        (int(sentinels.rivals[0]), planted, as_planted),
    ):
        assert rival == expected[1] if expected[1] is not None else rival != label
        assert logits[rival] - logits[label] == expected[0]


def test_an_ordinary_examples_rival_is_any_other_class() -> None:
    sentinels = make(10, 3)
    index = (sentinels.indices + 1) % 10
    scored, _ = sentinels.observe(index, torch.tensor([[1.0, 5.0, 2.0]]), torch.tensor([0]))
    assert (scored.scores.item(), scored.rivals.item()) == (4.0, 1)
    assert sentinels.ledger.current.isnan().all()
    assert (sentinels.rivals[:-1] == -1).all()


def test_scored_under_planted_labels_without_those_never_seen() -> None:
    sentinels = make(50, 10)  # five of them
    given = torch.arange(50, dtype=torch.int16) % 10
    index = sentinels.indices[[0, 3, 4]]
    labels = sentinels.plant(index, given[index].long())
    logits = torch.nn.functional.one_hot(given[index].long(), 10) * 6.0
    sentinels.observe(index, logits, labels)
    sentinels.close_epoch(torch.zeros(50))
    scored = sentinels.scored(given)
    assert scored.scores.tolist() == [6.0] * 3
    assert torch.equal(scored.labels, labels)
    assert scored.rivals.tolist() == given[index].tolist()


def test_known_are_those_with_a_score() -> None:
    scored = Scored(torch.tensor([1.0, math.nan, 3.0]), torch.arange(3), torch.arange(3, 6)).known()
    assert [column.tolist() for column in scored] == [[1.0, 3.0], [0, 2], [3, 5]]


def test_closing_an_epoch_by_hand() -> None:
    """Means 4 and -1, lower quartile -2, variances 1 and 1: six deviations, weight 6⁸."""
    sentinels = make(50)
    sentinels.ledger.record(torch.tensor([0, 1, 3, 4]), torch.tensor([3.0, 5.0, 3.0, 5.0]))
    scores = torch.tensor([-2.0, 0.0] * 25)
    assert sentinels.close_epoch(scores) == pytest.approx(6.0**8)
    assert sentinels.separations == pytest.approx([6.0])
    assert sentinels.ledger.values[[0, 1, 3, 4]].tolist() == [3.0, 5.0, 3.0, 5.0]
    assert sentinels.ledger.current.isnan().all()


def test_epochs_count_by_the_eighth_power_of_their_separation() -> None:
    """Separations 2 and 1: the second epoch's share is 1 / (1 + 0.9 · 256)."""
    sentinels = make(50)
    for above in (2.0, 1.0):
        sentinels.ledger.record(torch.arange(4), torch.tensor([-1.0, 1, -1, 1]) - 1 + above)
        sentinels.close_epoch(torch.tensor([-1.0, 1.0] * 25))
    assert sentinels.separations == pytest.approx([2.0, 1.0])
    share = 1 / (1 + 0.9 * 256)
    assert sentinels.ledger.values[0].item() == pytest.approx(0.0 - share)


@pytest.mark.parametrize("below", [0.0, 5.0])
def test_an_epoch_that_tells_nothing_apart_hardly_counts(below: float) -> None:
    sentinels = make(50)
    sentinels.ledger.record(torch.arange(5), torch.full((5,), -below))
    assert sentinels.close_epoch(torch.zeros(50)) == pytest.approx(1e-24)


def test_state_goes_over_whatever_the_seed() -> None:
    first, second = make(50, seed=1), make(50, seed=2)
    given = torch.arange(50) % 10
    scores_of(first, torch.randn(50, 10), given)
    first.close_epoch(torch.arange(50.0))
    second.load_state_dict(first.state_dict())
    for name in ("indices", "shifts", "rivals"):
        assert torch.equal(getattr(second, name), getattr(first, name))
    assert second.separations == first.separations
    assert len(first.separations) == 1
    assert torch.equal(second.ledger.values, first.ledger.values)
    scores_of(second, torch.randn(50, 10), given)
    before = first.rivals.clone()
    second.close_epoch(torch.zeros(50))
    assert len(first.separations) == 1  # a list of its own, and columns of its own
    assert torch.equal(first.rivals, before)
