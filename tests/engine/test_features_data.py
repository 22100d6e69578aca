"""How features are scaled before a head trains on them, and when their mean is taken off."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from oddly.data.base import LabelledData, Split
from oddly.data.synthetic import synthetic
from oddly.engine.embed import COMMON, features_data, is_centred


def spread(common: float, number: int = 200) -> Tensor:
    """Features whose mean has this share of their squared length."""
    draw = torch.Generator().manual_seed(0)
    own = torch.randn(number, 64, generator=draw)
    own = own - own.mean(0)
    own = own / own.square().sum(1).mean().sqrt()
    direction = torch.ones(64) / 8
    return own * (1 - common) ** 0.5 + direction * common**0.5


def prepare(train: Tensor, test: Tensor | None = None) -> LabelledData:
    data = synthetic(4, 50, 8, test_per_class=1)

    def split(images: Tensor) -> Split:
        return Split(
            images.half(), torch.arange(len(images)) % 4, [str(i) for i in range(len(images))]
        )

    return features_data(data, split(train), None if test is None else split(test))


def images_of(split: Split) -> Tensor:
    assert isinstance(split.images, Tensor)
    return split.images.float()


@pytest.mark.parametrize("common", [0.0, COMMON - 0.01])
def test_features_are_only_scaled_where_the_mean_is_a_part_of_them(common: float) -> None:
    features = 7 * spread(common)
    seen = images_of(prepare(features).train)
    assert seen.square().sum(1).mean().item() == pytest.approx(1, rel=1e-2)
    assert not is_centred(seen) or not common
    torch.testing.assert_close(seen * (features[0, 0] / seen[0, 0]), features, rtol=0.02, atol=0.02)


def test_the_mean_is_taken_off_where_it_is_most_of_them() -> None:
    features = 7 * spread(COMMON + 0.02)
    data = prepare(features, test=features[:5])
    seen = images_of(data.train)
    assert seen.square().sum(1).mean().item() == pytest.approx(1, rel=1e-2)
    assert seen.mean(0).abs().max().item() < 2e-3 and is_centred(seen)
    assert data.test is not None
    torch.testing.assert_close(images_of(data.test), seen[:5])  # by the mean of the others


def test_images_that_are_all_the_same_are_not_blown_up() -> None:
    seen = images_of(prepare(torch.ones(40, 64)).train)
    assert bool(seen.isfinite().all()) and seen.square().sum(1).mean().item() == pytest.approx(1)
