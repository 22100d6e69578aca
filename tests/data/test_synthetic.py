from __future__ import annotations

import torch
from torch import Tensor

from oddly.data import DataOptions, load_data, synthetic


def test_shape_and_seed() -> None:
    data = synthetic(num_classes=4, per_class=5, size=6, seed=1, channels=1, test_per_class=2)
    assert isinstance(data.train.images, Tensor) and data.test is not None
    assert data.train.images.shape == (20, 1, 6, 6) and data.train.images.dtype == torch.uint8
    assert torch.bincount(data.train.labels).tolist() == [5] * 4
    assert len(data.test) == 8 and data.image_shape == (1, 6, 6)
    other = synthetic(num_classes=4, per_class=5, size=6, seed=2, channels=1).train.images
    assert isinstance(other, Tensor) and not torch.equal(other, data.train.images)


def test_the_nearest_class_mean_finds_nearly_all() -> None:
    data = load_data("synthetic", DataOptions())
    assert isinstance(data.train.images, Tensor) and data.test is not None
    assert isinstance(data.test.images, Tensor)
    x = data.train.images.flatten(1).float()
    means = torch.stack([x[data.train.labels == k].mean(0) for k in range(3)])
    found = torch.cdist(data.test.images.flatten(1).float(), means).argmin(1)
    assert (found == data.test.labels).double().mean() > 0.95
