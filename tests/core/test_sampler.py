"""Only kept indices, exact lengths, an order decided by epoch and seed, shares by rank."""

from __future__ import annotations

import io

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from oddly.core import KeepSampler
from oddly.errors import InputError


def mask(num_examples: int, kept: list[int]) -> Tensor:
    keep = torch.zeros(num_examples, dtype=torch.bool)
    keep[kept] = True
    return keep


def test_every_example_once() -> None:
    sampler = KeepSampler(100)
    order = list(sampler)
    assert len(sampler) == len(order) == 100
    assert sorted(order) == list(range(100))
    assert order != sorted(order)
    assert all(type(index) is int for index in order)


def test_only_kept_ones_after_pruning() -> None:
    sampler = KeepSampler(10)
    sampler.set_keep(mask(10, [1, 4, 8]))
    assert len(sampler) == sampler.num_kept == 3
    assert sorted(sampler) == [1, 4, 8]


def test_keeping_all_again() -> None:
    sampler = KeepSampler(4)
    sampler.set_keep(mask(4, [1]))
    sampler.set_keep(mask(4, [0, 1, 2, 3]))
    assert sorted(sampler) == [0, 1, 2, 3]


def test_order_differs_by_epoch_and_by_seed_and_can_be_repeated() -> None:
    orders = {}
    for seed in range(4):
        for epoch in range(4):
            sampler = KeepSampler(50, seed)
            sampler.set_epoch(epoch)
            orders[seed, epoch] = list(sampler)
            assert list(sampler) == orders[seed, epoch]
    assert len({tuple(order) for order in orders.values()}) == 16


def test_the_global_random_stream_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    list(KeepSampler(10))
    assert torch.equal(before, torch.random.get_rng_state())


def test_without_shuffling() -> None:
    sampler = KeepSampler(6, shuffle=False)
    sampler.set_keep(mask(6, [5, 0, 3]))
    assert list(sampler) == [0, 3, 5]


def test_a_broken_off_epoch_goes_on_where_it_stopped() -> None:
    sampler = KeepSampler(10, seed=3)
    sampler.set_epoch(2)
    whole = list(sampler)
    sampler.set_epoch(2, start=4)
    assert len(sampler) == 6
    assert list(sampler) == whole[4:]
    sampler.set_epoch(3)
    assert len(sampler) == 10  # the next epoch is whole again


@pytest.mark.parametrize("start", [10, 15])
def test_an_epoch_broken_off_at_its_end_is_empty(start: int) -> None:
    sampler = KeepSampler(10)
    sampler.set_epoch(0, start)
    assert len(sampler) == len(list(sampler)) == 0


@pytest.mark.parametrize("kept", [None, [1, 2, 3, 6]])
def test_state_goes_through_a_file(kept: list[int] | None) -> None:
    sampler = KeepSampler(8, seed=5)
    if kept is not None:
        sampler.set_keep(mask(8, kept))
    sampler.set_epoch(3, start=1)
    file = io.BytesIO()
    torch.save(sampler.state_dict(), file)
    file.seek(0)
    resumed = KeepSampler(8, seed=5)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    assert list(resumed) == list(sampler)
    assert len(resumed) == len(sampler)


@pytest.mark.parametrize("num_kept", [1, 2, 7, 8, 9])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_ranks_share_all_kept_examples(num_kept: int, world_size: int) -> None:
    """Equal shares that cover all; no more repeats than equal lengths force."""
    shares = []
    for rank in range(world_size):
        sampler = KeepSampler(20, seed=1, rank=rank, world_size=world_size)
        sampler.set_keep(mask(20, list(range(5, 5 + num_kept))))
        shares.append(list(sampler))
        assert len(sampler) == len(shares[-1]) == -(-num_kept // world_size)
    together = [index for share in shares for index in share]
    assert set(together) == set(range(5, 5 + num_kept))
    assert len(together) - num_kept < world_size


def test_a_share_is_resumable() -> None:
    sampler = KeepSampler(11, rank=1, world_size=2)
    whole = list(sampler)
    sampler.set_epoch(0, start=2)
    assert list(sampler) == whole[2:]
    assert len(sampler) == len(whole) - 2


def test_a_loader_counts_its_batches_after_pruning() -> None:
    sampler = KeepSampler(10)
    loader = DataLoader(TensorDataset(torch.arange(10)), 4, sampler=sampler)
    assert len(loader) == 3
    sampler.set_keep(mask(10, [0, 3, 5, 7, 9]))
    assert len(loader) == len(list(loader)) == 2


def test_a_byte_per_example_is_held() -> None:
    sampler = KeepSampler(1000)
    sampler.set_keep(torch.arange(1000) % 3 > 0)
    assert (
        sum(value.nbytes for value in vars(sampler).values() if isinstance(value, Tensor)) == 1000
    )


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (torch.zeros(4, dtype=torch.bool), "keep is False everywhere, so nothing is left"),
        (torch.ones(5, dtype=torch.bool), r"boolean mask of 4, got torch.bool \(5,\)"),
        (torch.ones(4, 1, dtype=torch.bool), r"boolean mask of 4, got torch.bool \(4, 1\)"),
        (torch.tensor([0, 1, 2, 3]), r"boolean mask of 4, got torch.int64 \(4,\)"),
    ],
)
def test_bad_masks(keep: Tensor, message: str) -> None:
    sampler = KeepSampler(4)
    with pytest.raises(InputError, match=message):
        sampler.set_keep(keep)
    assert sampler.num_kept == 4


def test_no_examples() -> None:
    with pytest.raises(InputError, match="the dataset is empty"):
        KeepSampler(0)


def test_refilled_epochs_go_round_the_kept_ones_in_new_orders() -> None:
    sampler = KeepSampler(10, refill=True)
    plain = list(KeepSampler(10))
    assert list(sampler) == plain  # nothing to fill yet
    sampler.set_keep(mask(10, [1, 4, 6]))
    order = list(sampler)
    assert len(order) == len(sampler) == 10
    rounds = [order[start : start + 3] for start in (0, 3, 6)]
    assert all(sorted(one) == [1, 4, 6] for one in rounds)
    assert order[9] in (1, 4, 6)
    assert len({tuple(one) for one in rounds}) > 1
    assert list(sampler) == order
    sampler.set_epoch(1, start=4)
    assert len(list(sampler)) == len(sampler) == 6


def test_refilled_shares_stay_equal() -> None:
    keep = mask(11, [0, 2, 3, 7, 9])
    shares = []
    for rank in range(2):
        sampler = KeepSampler(11, rank=rank, world_size=2, refill=True)
        sampler.set_keep(keep)
        shares.append(list(sampler))
        assert len(sampler) == len(shares[-1]) == 6
    together = [index for pair in zip(*shares, strict=True) for index in pair]
    alone = KeepSampler(11, refill=True)
    alone.set_keep(keep)
    assert together[:11] == list(alone)


@pytest.mark.parametrize(("kept", "batch_size", "yielded"), [(9, 4, 8), (8, 4, 8), (7, 4, 7)])
def test_no_batch_of_one_comes_of_pruning(kept: int, batch_size: int, yielded: int) -> None:
    """Batch norm refuses to train on one example; who waits is another one each epoch."""
    sampler = KeepSampler(20, batch_size=batch_size)
    sampler.set_keep(mask(20, list(range(kept))))
    seen: set[int] = set()
    for epoch in range(20):
        sampler.set_epoch(epoch)
        order = list(sampler)
        assert len(sampler) == len(order) == len(set(order)) == yielded
        seen.update(order)
    assert seen == set(range(kept))
    sampler.set_epoch(0, start=batch_size)
    assert len(sampler) == len(list(sampler)) == yielded - batch_size


@pytest.mark.parametrize(("kept", "batch_size"), [(5, 1), (1, 4), (5, None)])
def test_batches_of_one_that_are_meant_stay(kept: int, batch_size: int | None) -> None:
    sampler = KeepSampler(20, batch_size=batch_size)
    sampler.set_keep(mask(20, list(range(kept))))
    assert len(sampler) == len(list(sampler)) == kept


def test_before_pruning_and_in_refilled_epochs_all_batches_stay() -> None:
    assert len(list(KeepSampler(9, batch_size=4))) == 9
    refilled = KeepSampler(9, batch_size=4, refill=True)
    refilled.set_keep(mask(9, [1, 2, 3]))
    assert len(refilled) == len(list(refilled)) == 9


def test_no_rank_gets_a_batch_of_one() -> None:
    """Eighteen for two are nine each, in fours: 4 + 4 + 1."""
    for rank in range(2):
        sampler = KeepSampler(20, rank=rank, world_size=2, batch_size=4)
        sampler.set_keep(mask(20, list(range(18))))
        assert len(sampler) == len(list(sampler)) == 8
