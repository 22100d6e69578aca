"""From a split of the data to batches on the training device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from oddly.core import IndexedDataset
from oddly.data.base import Augment, LabelledData, Split
from oddly.data.transforms import augment, blank, centre, normalise
from oddly.engine.config import RunConfig
from oddly.errors import InputError
from oddly.methods import Method

DEVICE_SHARE = 0.5  # share of a GPU's free memory that the data may take


@dataclass
class Feed:
    """Batches of uint8 images, augmented and normalised on the training device.

    Images in memory are moved to the device if they fit; files are decoded by worker processes.
    From there on, the code is the same for both.
    """

    split: Split
    mean: tuple[float, ...]
    std: tuple[float, ...]
    augment: Augment
    batch_size: int
    device: torch.device
    workers: int = 0

    def __post_init__(self) -> None:
        self.labels = self.split.labels.to(self.device)
        self.images = self.split.images
        if isinstance(self.images, Tensor) and _fits(self.images, self.device):
            self.images = self.images.to(self.device)

    def batches(
        self, order: Tensor, generator: torch.Generator | None = None, views: int = 1
    ) -> Iterator[tuple[Tensor, tuple[Tensor, ...], Tensor]]:
        """Yield (index, views of the inputs, labels) in this order.

        The inputs are augmented if a generator is given.
        """
        for index, images in self._images(order):
            yield self._make(index, images, generator, views)

    def batch(
        self, index: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        """The same for these examples as a single batch.

        Files are decoded here, because starting worker processes for one batch is not worth it.
        """
        if isinstance(self.images, Tensor):
            index = index.to(self.images.device, non_blocking=True)
            return self._make(index, self.images[index], generator)
        images = torch.stack([self.images[i] for i in index.tolist()])
        return self._make(index, images, generator)

    def steps(self, examples: int) -> int:
        return len(batch_sizes(examples, self.batch_size))

    def _images(self, order: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        sizes = batch_sizes(len(order), self.batch_size)
        if isinstance(self.images, Tensor):
            # The order is transferred once; slicing it then needs no transfer per step.
            for index in order.to(self.images.device, non_blocking=True).split(sizes):
                yield index, self.images[index]
            return
        loader = DataLoader(
            IndexedDataset(self.images),
            batch_sampler=[part.tolist() for part in order.split(sizes)],
            num_workers=self.workers,
            pin_memory=self.device.type == "cuda",
        )
        try:
            for images, index in loader:
                yield index, images
        except InputError as error:  # from a worker process, its text is a whole traceback
            raise InputError(
                str(error).rstrip().splitlines()[-1].split("InputError: ")[-1]
            ) from None

    def _make(
        self, index: Tensor, images: Tensor, generator: torch.Generator | None, views: int = 1
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        index = index.to(self.device, non_blocking=True)
        images = images.to(self.device, non_blocking=True)
        made = tuple(self._prepare(images, generator) for _ in range(views))
        return index, made, self.labels[index]

    def _prepare(self, images: Tensor, generator: torch.Generator | None) -> Tensor:
        if images.is_floating_point():  # features are used as they are
            return images.float()
        if generator is not None:
            images = augment(images, self.augment, generator)
        elif self.augment.crop:
            images = centre(images, self.augment.crop)
        ready = normalise(images, self.mean, self.std)
        if generator is not None and self.augment.cutout:
            ready = blank(ready, self.augment.cutout, generator)
        return ready.contiguous(memory_format=torch.channels_last)


def batch_sizes(examples: int, batch_size: int) -> list[int]:
    """Whole batches, then the remainder.

    A remainder of one joins the batch before it, since batch norm cannot train on one example.
    """
    whole, rest = divmod(examples, batch_size)
    sizes = [batch_size] * whole + [rest] * (rest > 0)
    return [*sizes[:-2], batch_size + 1] if rest == 1 and whole else sizes


def make_feed(
    data: LabelledData, split: Split, batch_size: int, device: torch.device, workers: int
) -> Feed:
    return Feed(split, data.mean, data.std, data.augment, batch_size, device, workers)


def choose_augment(data: LabelledData, config: RunConfig) -> LabelledData:
    """The data with the run's augmentation; refuse what does not work with this data."""
    how = data.augment
    flip = how.flip if config.flip is None else config.flip
    reflect = config.reflect or how.reflect
    how = replace(how, flip=flip, cutout=config.cutout or how.cutout, reflect=reflect)
    of_images = {"cutout": how.cutout, "reflect": reflect, "mirror_test": config.mirror_test}
    asked = [name for name, is_asked in of_images.items() if is_asked]
    if asked and data.train.holds_features:
        raise InputError(f"{asked[0]} needs images, but {data.name} contains features")
    if config.reflect and not how.pad:
        raise InputError(f"reflect needs shifted images; those of {data.name} are not shifted")
    _, height, width = data.image_shape
    if how.cutout > min(height, width):
        raise InputError(
            f"cutout {how.cutout} is larger than the images, {width} x {height} pixels"
        )
    if config.mirror_test and not flip:
        raise InputError(
            f"mirror_test needs training on mirrored images, but flip is off for {data.name}"
        )
    return replace(data, augment=how)


def check_cut(method: Method, features: bool) -> None:
    """Refuse CutMix on features."""
    if features and getattr(method, "cut", False):
        raise InputError("cut needs images and does not work on features")


def _fits(images: Tensor, device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return images.nbytes < DEVICE_SHARE * free
