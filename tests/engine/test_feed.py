from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from oddly.data import synthetic
from oddly.data.base import Augment, Split
from oddly.data.source import ImageFiles
from oddly.engine.feed import Feed, batch_sizes, make_feed
from oddly.errors import InputError

CPU = torch.device("cpu")


class Decoded(Dataset[Tensor]):
    """Images one at a time, as files would come."""

    def __init__(self, images: Tensor) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Tensor:
        return self.images[index]


def collect(feed: Feed, order: Tensor, seed: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    index, inputs, labels = [], [], []
    for i, (x,), y in feed.batches(order, generator):
        index.append(i)
        inputs.append(x)
        labels.append(y)
    return torch.cat(index), torch.cat(inputs), torch.cat(labels)


@pytest.mark.parametrize(
    ("examples", "sizes"),
    [(8, [4, 4]), (10, [4, 4, 2]), (9, [4, 5]), (3, [3]), (1, [1]), (5, [5]), (0, [])],
)
def test_a_rest_of_one_joins_the_batch_before(examples: int, sizes: list[int]) -> None:
    assert batch_sizes(examples, 4) == sizes


def test_batches_of_one_when_asked_for() -> None:
    assert batch_sizes(3, 1) == [1, 1, 1]


def test_batches_follow_the_order_and_are_normalised() -> None:
    data = synthetic()
    feed = make_feed(data, data.train, 32, CPU, 0)
    order = torch.tensor([5, 3, 119, 0, 7])
    index, inputs, labels = collect(feed, order)
    assert index.tolist() == order.tolist()
    assert labels.tolist() == data.train.labels[order].tolist()
    assert isinstance(data.train.images, Tensor)
    expected = (data.train.images[order] / 255 - 0.5) / 0.25
    torch.testing.assert_close(inputs, expected)
    assert inputs.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("workers", [0, 2])
def test_decoded_images_give_the_same_batches_as_a_tensor(workers: int) -> None:
    data = synthetic(per_class=10)
    assert isinstance(data.train.images, Tensor)
    slow = replace(data.train, images=Decoded(data.train.images))
    order = torch.randperm(30, generator=torch.Generator().manual_seed(1))
    shift = Augment(pad=2, flip=True)
    feeds = [
        Feed(split, data.mean, data.std, shift, 8, CPU, workers) for split in (data.train, slow)
    ]
    for fast, decoded in zip(*(collect(feed, order, 3) for feed in feeds), strict=True):
        assert torch.equal(fast, decoded)


def test_views_are_independent_augmentations() -> None:
    data = synthetic(per_class=10)
    feed = Feed(data.train, data.mean, data.std, Augment(pad=2, flip=True), 30, CPU)
    generator = torch.Generator().manual_seed(0)
    ((_, views, _),) = feed.batches(torch.arange(30), generator, views=2)
    assert len(views) == 2 and not torch.equal(*views)


def test_without_a_generator_nothing_is_augmented() -> None:
    data = synthetic(per_class=10)
    feed = Feed(data.train, data.mean, data.std, Augment(pad=2, flip=True), 30, CPU)
    first, second = (collect(feed, torch.arange(30))[1] for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_file_that_vanishes_is_one_clear_line(tmp_path: Path, workers: int) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    images = ImageFiles(str(tmp_path), ["a.png", "gone.png"], 8)
    split = Split(images, torch.tensor([0, 1]), ["a.png", "gone.png"])
    feed = Feed(split, (0.5,) * 3, (0.25,) * 3, Augment(), 2, CPU, workers)
    with pytest.raises(InputError) as caught:
        list(feed.batches(torch.arange(2)))
    message = str(caught.value)
    assert message == f"{tmp_path}/gone.png cannot be read: no such file or directory"
