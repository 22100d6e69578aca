from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, get_worker_info

from oddly.data import synthetic
from oddly.data.base import Augment, Split
from oddly.data.source import ImageFiles
from oddly.data.transforms import augment, blank, normalise
from oddly.engine.config import RunConfig
from oddly.engine.feed import Feed, batch_sizes, choose_augment, make_feed
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


class DecodedHere(Decoded):
    """In the process that asks, or not at all."""

    def __getitem__(self, index: int) -> Tensor:
        assert get_worker_info() is None
        return super().__getitem__(index)


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


@pytest.mark.parametrize("decoded", [False, True])
def test_a_single_batch_is_what_the_batches_are_made_of(decoded: bool) -> None:
    """Of another size than the feed's; and read in this process, whoever reads the others."""
    data = synthetic()
    assert isinstance(data.train.images, Tensor)
    images = DecodedHere(data.train.images) if decoded else data.train.images
    split = replace(data.train, images=images)
    feed = Feed(split, data.mean, data.std, Augment(pad=1, flip=True), 32, CPU, workers=2)
    order, seed = torch.tensor([7, 3, 90, 11, 5]), 4
    index, (inputs,), labels = feed.batch(order, torch.Generator().manual_seed(seed))
    whole = replace(feed, batch_size=len(order), workers=0)
    for found, expected in zip((index, inputs, labels), collect(whole, order, seed), strict=True):
        assert torch.equal(found, expected)


def test_views_are_independent_augmentations() -> None:
    data = synthetic(per_class=10)
    feed = Feed(data.train, data.mean, data.std, Augment(pad=2, flip=True), 30, CPU)
    generator = torch.Generator().manual_seed(0)
    ((_, views, _),) = feed.batches(torch.arange(30), generator, views=2)
    assert len(views) == 2 and not torch.equal(*views)


def test_without_a_generator_nothing_is_augmented() -> None:
    data = synthetic(per_class=10)
    feed = Feed(data.train, data.mean, data.std, Augment(pad=2, flip=True, cutout=3), 30, CPU)
    first, second = (collect(feed, torch.arange(30))[1] for _ in range(2))
    assert torch.equal(first, second)
    assert isinstance(data.train.images, Tensor)
    assert torch.equal(first, normalise(data.train.images, data.mean, data.std))


def test_squares_are_blanked_last_and_draw_only_where_asked_for() -> None:
    data, how = synthetic(per_class=10), Augment(pad=2, flip=True)
    assert isinstance(data.train.images, Tensor)
    generator = torch.Generator().manual_seed(4)
    images = normalise(augment(data.train.images, how, generator), data.mean, data.std)
    stream = generator.get_state()
    expected = {0: images, 3: blank(images, 3, generator)}
    for side, inputs in expected.items():
        asked = replace(how, cutout=side)
        feed = Feed(data.train, data.mean, data.std, asked, 30, CPU)
        fresh = torch.Generator().manual_seed(4)
        ((_, (made,), _),) = feed.batches(torch.arange(30), fresh)
        assert torch.equal(made, inputs)
        assert torch.equal(fresh.get_state(), stream) is (side == 0)


def test_the_augmentation_is_the_datas_where_nothing_is_asked_for() -> None:
    data = replace(synthetic(), augment=Augment(pad=1, flip=True, cutout=2))
    assert choose_augment(data, RunConfig("mine")) == data
    asked = choose_augment(data, RunConfig("mine", flip=False, cutout=8, reflect=True))
    assert asked.augment == Augment(pad=1, flip=False, cutout=8, reflect=True)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (RunConfig("mine", cutout=9), "cutout 9 is larger than the images, 8 x 8 pixels"),
        (RunConfig("mine", mirror_test=True, flip=False), "flip is off for synthetic"),
        (RunConfig("mine", reflect=True), "shifted images; those of synthetic are not"),
    ],
)
def test_what_images_are_refused(config: RunConfig, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choose_augment(synthetic(), config)


@pytest.mark.parametrize("options", [{"cutout": 1}, {"mirror_test": True}, {"reflect": True}])
def test_features_have_no_pixels(options: dict[str, int]) -> None:
    images = synthetic()
    features = replace(images.train, images=torch.rand(len(images.train), 5))
    data = replace(images, train=features, image_shape=(5, 1, 1))
    with pytest.raises(
        InputError, match=f"{next(iter(options))} needs images, but synthetic contains"
    ):
        choose_augment(data, RunConfig("mine", **options))  # type: ignore[arg-type]


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
