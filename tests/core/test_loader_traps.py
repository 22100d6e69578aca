"""Mistakes and mishaps with loaders that end in one clear line, or not at all."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, DistributedSampler

import oddly
from oddly.errors import InputError
from tests.core.test_loader import K, N, dataset, denoise


def test_a_cell_that_is_run_twice_is_told() -> None:
    loader, _ = denoise(DataLoader(dataset(), 32, shuffle=True))
    with pytest.raises(InputError, match="this loader was already returned by oddly.denoise"):
        denoise(loader)


def test_an_option_that_nobody_knows_is_told_with_the_nearest() -> None:
    loader = DataLoader(dataset(), 32, shuffle=True)
    with pytest.raises(InputError, match="unknown option 'epoch'; did you mean 'epochs'"):
        denoise(loader, epoch=20)


def test_pruning_leaves_no_batch_of_one_that_batch_norm_would_refuse() -> None:
    loader, denoiser = denoise(DataLoader(dataset(), 32, shuffle=True))
    denoiser.sampler.set_keep(torch.arange(N) < 65)
    norm = nn.BatchNorm1d(1)
    sizes = [len(norm(inputs[:, None])) for inputs, _, _ in loader]
    assert sizes == [32, 32]
    assert len(loader) == 2


def test_who_drops_the_last_batch_loses_nothing_more() -> None:
    loader, denoiser = denoise(DataLoader(dataset(), 32, shuffle=True, drop_last=True))
    denoiser.sampler.set_keep(torch.arange(N) < 65)
    assert [len(index) for _, _, index in loader] == [32, 32]
    assert len(denoiser.sampler) == 65


def test_of_less_than_a_batch_that_is_kept_not_all_is_dropped() -> None:
    """Training would go on without a single step."""
    loader, denoiser = denoise(DataLoader(dataset(), 32, shuffle=True, drop_last=True))
    denoiser.sampler.set_keep(torch.arange(N) < 20)
    [batch] = [index for _, _, index in loader]
    assert len(batch) == 32
    assert sorted(set(batch.tolist())) == list(range(20))


@pytest.mark.parametrize("change", [lambda items: items[1:], lambda items: items * 2])
def test_a_collate_function_that_leaves_out_or_repeats_examples_is_told(change: Any) -> None:
    collate = DataLoader(dataset()).collate_fn
    loader, denoiser = denoise(
        DataLoader(dataset(), 32, collate_fn=lambda items: collate(change(items)))
    )
    inputs, labels, index = next(iter(loader))
    with pytest.raises(InputError, match="does your collate_fn leave out, repeat or mix"):
        denoiser.observe(index, torch.zeros(len(inputs), K), labels)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_distributed_sampler_says_which_share_it_was(rank: int) -> None:
    """Made by hand, without torch.distributed or for some of its ranks alone."""
    data = dataset()
    sampler = DistributedSampler(data, num_replicas=2, rank=rank, shuffle=False)
    loader, _ = denoise(DataLoader(data, 32, sampler=sampler))
    assert torch.cat([index for _, _, index in loader]).tolist() == list(range(rank, N, 2))


Pair = namedtuple("Pair", "inputs labels")  # noqa: PYI024


def as_pair(items: list[Any]) -> Pair:
    return Pair(*(torch.tensor(column) for column in zip(*items, strict=True)))


def with_index(batch: Pair, index: Tensor) -> tuple[Pair, Tensor]:
    return batch, index


def test_a_batch_of_another_kind_is_carried_as_you_say() -> None:
    loader = DataLoader(dataset(), 32, collate_fn=as_pair)
    plain, _ = oddly.denoise(loader, num_classes=K, epochs=5)
    with pytest.raises(InputError, match="not Pair: pass carry=, a function of batch and"):
        next(iter(plain))
    carried, _ = oddly.denoise(loader, num_classes=K, epochs=5, carry=with_index)
    batch, index = next(iter(carried))
    assert type(batch) is Pair
    assert torch.equal(batch.inputs, index.float())
