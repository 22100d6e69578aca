"""From a split of the data to batches on the training device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from oddly.core import IndexedDataset
from oddly.data.base import Augment, LabelledData, Split
from oddly.data.transforms import augment, normalise

DEVICE_SHARE = 0.5  # of a GPU's free memory may hold the data itself


@dataclass
class Feed:
    """Images as uint8, augmented and normalised a batch at a time on the training device.

    Images in memory are laid on the device when they fit there; files are decoded by worker
    processes. Either way the same batched code does the rest.
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
        """(index, views of the inputs, labels) in this order; augmented by `generator` if any."""
        for index, images in self._images(order):
            index = index.to(self.device, non_blocking=True)
            images = images.to(self.device, non_blocking=True)
            made = tuple(self._prepare(images, generator) for _ in range(views))
            yield index, made, self.labels[index]

    def steps(self, examples: int) -> int:
        return -(-examples // self.batch_size)

    def _images(self, order: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        parts = order.split(self.batch_size)
        if isinstance(self.images, Tensor):
            # The whole order travels once; slicing it then costs no transfer per step.
            for index in order.to(self.images.device).split(self.batch_size):
                yield index, self.images[index]
        else:
            loader = DataLoader(
                IndexedDataset(self.images),
                batch_sampler=[part.tolist() for part in parts],
                num_workers=self.workers,
                pin_memory=self.device.type == "cuda",
            )
            for images, index in loader:
                yield index, images

    def _prepare(self, images: Tensor, generator: torch.Generator | None) -> Tensor:
        if generator is not None:
            images = augment(images, self.augment, generator)
        ready = normalise(images, self.mean, self.std)
        return ready.contiguous(memory_format=torch.channels_last)


def make_feed(
    data: LabelledData, split: Split, batch_size: int, device: torch.device, workers: int
) -> Feed:
    return Feed(split, data.mean, data.std, data.augment, batch_size, device, workers)


def _fits(images: Tensor, device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return images.nbytes < DEVICE_SHARE * free
