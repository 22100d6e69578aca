"""N images that are decoded when asked for, wherever they lie; and all of them at once."""

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
"""Images, evenly spread, whose headers are read."""


class ImageSource(Dataset[Tensor], ABC):
    """N images decoded when asked for; small enough to be sent to loader workers."""

    size: int
    """Side of the square that every image is brought to."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def source(self, index: int) -> str | bytes:
        """Where an image lies, or its content; `Unreadable` where there is none."""

    @abstractmethod
    def stamp(self, index: int) -> str:
        """Changes when the image does."""

    @abstractmethod
    def name(self, index: int) -> str:
        """For messages."""

    @abstractmethod
    def subset(self, places: Sequence[int]) -> Self:
        """Some of the images."""

    @abstractmethod
    def resized(self, size: int) -> Self:
        """The same images brought to another size."""

    def decode(self, index: int) -> Tensor:
        """One image, or `Unreadable`."""
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
    """Changes when the file does, without reading it."""
    try:
        status = os.stat(path)
    except OSError:
        return "gone"
    return f"{status.st_size} {status.st_mtime_ns}"


def short_side(images: ImageSource) -> int | None:
    """The median in pixels, as some headers tell it; None where none can be read."""
    sides = []
    with warnings.catch_warnings():  # Pillow's remark on a large picture
        warnings.simplefilter("ignore")
        for i in range(0, len(images), max(1, -(-len(images) // PROBED))):
            with suppress(Unreadable):
                sides.append(min(picture_size(images.source(i))))
    return int(statistics.median(sides)) if sides else None


class ImageTensor(ImageSource):
    """Images in memory, uint8 (N, 3, H, W) or (N, 1, H, W), brought to another size."""

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
    """All readable images, and the reason for each place in `source` that is not among them.

    One uint8 tensor (N, 3, size, size) where that fits `memory_limit`, else files decoded when
    asked for; those too are decoded once here, so that training does not stop on the last one.
    `progress` is told how many files are done; `see` gets each image and its place, in a thread.
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

    list_formats()  # plugins register themselves once, before threads could do so side by side
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
    """All batches on a thread per core (decoders release the GIL); Ctrl-C drops what is queued."""
    done = 0
    pool = ThreadPoolExecutor(min(32, os.cpu_count() or 1))
    # Pillow's remarks (odd EXIF, a large picture) are noise here: what matters becomes a reason.
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
