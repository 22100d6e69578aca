"""Some examples of a split: images, labels, ids and the truth stay together."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from oddly.data import synthetic
from oddly.data.base import check_data
from oddly.errors import InputError


class Decoded(Dataset[Tensor]):
    """Images that come one at a time."""

    def __init__(self, images: Tensor) -> None:
        self.images = TensorDataset(images)

    def __getitem__(self, index: int) -> Tensor:
        return self.images[index][0]


@pytest.mark.parametrize("in_memory", [True, False])
def test_some_examples_in_another_order(in_memory: bool) -> None:
    data = synthetic()
    images = data.train.images
    assert isinstance(images, Tensor)
    if not in_memory:
        data = replace(data, train=replace(data.train, images=Decoded(images)))
    data = data.with_given_labels(torch.arange(len(images)) % 3)
    taken = data.take(torch.tensor([7, 2]))
    assert len(taken.train) == 2
    assert all(torch.equal(taken.train.images[i], images[k]) for i, k in enumerate((7, 2)))
    assert taken.train.labels.tolist() == [1, 2]
    assert taken.train.ids == ["train/00007", "train/00002"]
    assert data.true_labels is not None and taken.true_labels is not None
    assert taken.true_labels.tolist() == data.true_labels[[7, 2]].tolist()
    assert taken.test is data.test


def test_an_unknown_truth_stays_unknown() -> None:
    data = replace(synthetic(), true_labels=None)
    assert data.take(torch.tensor([0])).true_labels is None


def test_data_of_ones_own_is_checked() -> None:
    data = synthetic()
    train, features = data.train, torch.randn(len(data.train), 4)
    assert isinstance(train.images, Tensor)
    check_data(data)
    check_data(replace(data, train=replace(train, images=features), test=None))
    for broken, told in (
        (
            replace(train, labels=train.labels.int()),
            "labels must be torch.int64, got",
        ),
        (replace(train, ids=["x"] * len(train)), "two examples have the same id"),
        (replace(train, images=train.images.float()), r"got torch.float32 \(120, 3, 8, 8\)"),
        (replace(train, images=train.images[:, 0]), r"got torch.uint8 \(120, 8, 8\)"),
    ):
        with pytest.raises(InputError, match=told):
            check_data(replace(data, train=broken))
