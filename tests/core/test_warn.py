"""What a training loop is told that goes astray; the rest is in test_denoiser_input.py."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset, TensorDataset

from oddly.core import Denoiser, IndexedDataset
from oddly.core.warn import warn_unseen

N, K = 200, 4
MODEL = nn.Linear(1, K)


@pytest.mark.parametrize(("unseen", "told"), [(0, False), (80, False), (81, True), (200, True)])
def test_more_than_two_fifths_missing_is_told(unseen: int, told: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_unseen(torch.arange(N) >= unseen)
    found = [str(warning.message).partition(" were not")[0] for warning in caught]
    assert found == [f"{unseen} of 200 examples"] * told


def make() -> tuple[IndexedDataset, Denoiser]:
    data = IndexedDataset(TensorDataset(torch.zeros(N, 1), torch.arange(N) % K))
    return data, Denoiser(data, num_classes=K, epochs=10)


def observe(denoiser: Denoiser, loader: DataLoader[tuple[Tensor, ...]], logit: float = 0.0) -> None:
    for _, labels, index in loader:
        denoiser.observe(index, torch.full((len(index), K), logit), labels)


def test_a_loop_that_sees_half_of_the_examples_is_told_once_where_it_is() -> None:
    data, denoiser = make()
    loader = DataLoader(Subset(data, range(100)), 20)
    observe(denoiser, loader)
    with pytest.warns(
        UserWarning, match="100 of 200 examples were not observed in the first"
    ) as told:
        denoiser.end_epoch(MODEL)
    assert told[0].filename == __file__
    observe(denoiser, loader)
    denoiser.end_epoch(MODEL)  # a second warning would be an error


def test_whoever_tells_of_it_otherwise_is_not() -> None:
    data, denoiser = make()
    denoiser.warns = False
    observe(denoiser, DataLoader(Subset(data, range(100)), 20))
    denoiser.end_epoch(MODEL)


def test_a_network_of_nan_has_seen_its_examples() -> None:
    data, denoiser = make()
    observe(denoiser, DataLoader(data, 20, sampler=denoiser.sampler), math.nan)
    denoiser.end_epoch(MODEL)
