"""Images that are decoded when needed, from files, rows or memory; or all of them at once."""

from __future__ import annotations

import os
import statistics
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from typing import Self

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from oddly.data.images import decode_image, square
from oddly.errors import InputError, shown
from oddly.pictures import Unreadable, list_formats, picture_size

BATCH = 32
"""Files handed to a thread at once."""
PROBED = 200
"""Number of images, evenly spread, whose headers are read."""


class ImageSource(Dataset[Tensor], ABC):
    """N images decoded when needed; small enough to be pickled for loader workers."""

    size: int
    """Side of the square to which every image is resized and cropped."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def source(self, index: int) -> str | bytes:
        """The path of an image, or its content; raises `Unreadable` if there is none."""

    @abstractmethod
    def stamp(self, index: int) -> str:
        """A text that changes when the image does."""

    @abstractmethod
    def name(self, index: int) -> str:
        """The name for messages."""

    @abstractmethod
    def subset(self, places: Sequence[int]) -> Self:
        """Some of the images."""

    @abstractmethod
    def resized(self, size: int) -> Self:
        """The same images at another size."""

    def decode(self, index: int) -> Tensor:
        """One image as a tensor; raises `Unreadable` if it cannot be read."""
        return decode_image(self.source(index), self.size)

    def __getitem__(self, index: int) -> Tensor:
        try:
            return self.decode(index)
        except Unreadable as error:
            raise InputError(f"{shown(self.name(index))} cannot be read: {error}") from None


class ImageFiles(ImageSource):
    """Image files below a folder."""

    def __init__(self, root: str, paths: Sequence[str], size: int) -> None:
        self.root = root
        self.paths = paths
        self.size = size

    def __len__(self) -> int:
        return len(self.paths)

    def source(self, index: int) -> str:
        return os.path.join(self.root, self.paths[index])

    def stamp(self, index: int) -> str:
        return file_stamp(self.source(index))

    def name(self, index: int) -> str:
        return self.source(index)

    def subset(self, places: Sequence[int]) -> ImageFiles:
        return ImageFiles(self.root, [self.paths[i] for i in places], self.size)

    def resized(self, size: int) -> ImageFiles:
        return ImageFiles(self.root, self.paths, size)


def file_stamp(path: str) -> str:
    """A text that changes when the file does, from its size and time."""
    try:
        status = os.stat(path)
    except OSError:
        return "gone"
    return f"{status.st_size} {status.st_mtime_ns}"


def short_side(images: ImageSource) -> int | None:
    """The median short side in pixels, from some headers; None if none can be read."""
    sides = []
    with warnings.catch_warnings():  # Pillow's warning about large pictures
        warnings.simplefilter("ignore")
        for i in range(0, len(images), max(1, -(-len(images) // PROBED))):
            with suppress(Unreadable):
                sides.append(min(picture_size(images.source(i))))
    return int(statistics.median(sides)) if sides else None


class ImageTensor(ImageSource):
    """Images in memory, uint8 (N, 3, H, W) or (N, 1, H, W), resized when needed."""

    def __init__(self, images: Tensor, size: int) -> None:
        self.images, self.size = images, size

    def __len__(self) -> int:
        return len(self.images)

    def source(self, index: int) -> bytes:
        return self.images[index].numpy().tobytes()

    def decode(self, index: int) -> Tensor:
        pixels = self.images[index].expand(3, -1, -1).permute(1, 2, 0).numpy()
        resized = np.array(square(Image.fromarray(pixels), self.size))
        return torch.from_numpy(resized).permute(2, 0, 1).contiguous()

    def stamp(self, index: int) -> str:
        return self.source(index).hex()

    def name(self, index: int) -> str:
        return f"image {index}"

    def subset(self, places: Sequence[int]) -> ImageTensor:
        return ImageTensor(self.images[list(places)], self.size)

    def resized(self, size: int) -> ImageTensor:
        return ImageTensor(self.images, size)


def decode_files(
    source: ImageSource,
    memory_limit: int,
    progress: Callable[[int], None] | None = None,
    see: Callable[[int, Tensor], None] | None = None,
) -> tuple[Tensor | ImageSource, dict[int, str]]:
    """All readable images; and for unreadable ones, their place in `source` → the reason.

    The images are one uint8 tensor (N, 3, size, size) if that fits `memory_limit`, else a source
    that decodes them when needed. All are decoded once here in either case, so that training does
    not stop at the last one. `progress` is called with the number of files that are done; `see` is
    called in a thread with each place and image.
    """
    total, size = len(source), source.size
    fits = total * 3 * size * size <= memory_limit
    images = torch.empty((total if fits else 0, 3, size, size), dtype=torch.uint8)
    unreadable: dict[int, str] = {}

    def decode(batch: range) -> int:
        for i in batch:
            try:
                image = source.decode(i)
                if fits:
                    images[i] = image
                if see:
                    see(i, image)
            except Unreadable as error:
                unreadable[i] = str(error)
        return len(batch)

    list_formats()  # load Pillow's plugins once, before several threads would
    batches = [range(i, min(i + BATCH, total)) for i in range(0, total, BATCH)]
    _run_all(decode, batches, progress)
    bad = dict(sorted(unreadable.items()))
    good = [i for i in range(total) if i not in bad]
    if fits:
        return (images[good] if bad else images), bad
    return (source.subset(good) if bad else source), bad


def _run_all(
    work: Callable[[range], int], batches: Sequence[range], progress: Callable[[int], None] | None
) -> None:
    """Run all batches in a thread per core (decoders release the GIL); Ctrl-C drops the queue."""
    done = 0
    pool = ThreadPoolExecutor(min(32, os.cpu_count() or 1))
    # Ignore Pillow's warnings about odd EXIF or large pictures; unreadable ones are reported.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            futures: list[Future[int]] = [pool.submit(work, batch) for batch in batches]
            for future in as_completed(futures):
                done += future.result()
                if progress is not None:
                    progress(done)
        finally:
            pool.shutdown(cancel_futures=True)
