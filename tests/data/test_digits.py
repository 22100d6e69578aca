from __future__ import annotations

import torch
from sklearn.datasets import load_digits as sklearn_digits
from torch import Tensor

from oddly.data import DataOptions, load_data


def test_sizes_classes_and_scale() -> None:
    data = load_data("digits", DataOptions())
    assert data.test is not None and isinstance(data.train.images, Tensor)
    assert (len(data.train), len(data.test)) == (1437, 360)
    assert data.train.images.shape == (1437, 1, 8, 8)
    assert data.train.images.dtype == torch.uint8
    assert int(data.train.images.max()) == 255 and int(data.train.images.min()) == 0
    assert data.true_labels is not None and torch.equal(data.true_labels, data.train.labels)
    assert data.class_names == list("0123456789")


def test_split_is_stratified_disjoint_and_always_the_same() -> None:
    data = load_data("digits", DataOptions())
    assert data.test is not None
    assert isinstance(data.train.images, Tensor) and isinstance(data.test.images, Tensor)
    whole = torch.bincount(torch.from_numpy(sklearn_digits().target).long())
    test = torch.bincount(data.test.labels)
    assert (test - whole / 5).abs().max() <= 1
    assert torch.equal(test + torch.bincount(data.train.labels), whole)
    together = torch.cat([data.train.images, data.test.images]).flatten(1)
    assert len(torch.unique(together, dim=0)) == 1797  # no digit occurs twice
    again = load_data("digits", DataOptions())
    assert again.test is not None and torch.equal(again.test.labels, data.test.labels)
    assert data.test.labels[:10].tolist() == [9, 2, 5, 7, 6, 9, 7, 3, 3, 3]
