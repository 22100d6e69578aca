"""Which examples become sentinels, what is planted, and what is noted of them."""

from __future__ import annotations

import pytest
import torch

from oddly.core.sentinels import Sentinels, correct_percentile, how_many
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


def test_memorised_is_the_share_of_those_seen_whose_margin_is_negative() -> None:
    sentinels = make(50)  # five of them
    sentinels.ledger.record(torch.tensor([0, 1, 3, 4]), torch.tensor([-1.0, 2.0, -0.5, -3.0]))
    sentinels.close_epoch()
    sentinels.ledger.record(torch.tensor([2]), torch.tensor([0.0]))
    sentinels.close_epoch()
    assert sentinels.memorised == [0.75, 0.0]


def test_state_goes_over_whatever_the_seed() -> None:
    first, second = make(50, seed=1), make(50, seed=2)
    first.ledger.record(torch.tensor([0, 3]), torch.tensor([-1.0, 2.0]))
    first.close_epoch()
    second.load_state_dict(first.state_dict())
    assert torch.equal(second.indices, first.indices)
    assert torch.equal(second.shifts, first.shifts)
    assert second.memorised == first.memorised == [0.5]
    assert torch.equal(second.ledger.values.nan_to_num(-9), first.ledger.values.nan_to_num(-9))
    second.close_epoch()
    assert first.memorised == [0.5]  # a list of its own
