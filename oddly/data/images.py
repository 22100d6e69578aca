"""Image files of any size and mode become uint8 (3, S, S); those that cannot are named."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from oddly.data.listing import shown
from oddly.errors import InputError
from oddly.pictures import Unreadable, list_formats, read_picture

SUFFIXES = frozenset(
    [".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".gif", ".webp", ".avif", ".bmp"]
    + [".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k"]
)
BATCH = 32
"""Files handed to a thread at once."""


def decode_image(path: str, size: int) -> Tensor:
    """One file as uint8 (3, size, size): short side resized to `size`, centre cropped."""
    pixels = np.array(_square(read_picture(path, size), size))
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def _square(image: Image.Image, size: int) -> Image.Image:
    """The centred square, resized: the same as resizing the short side and cropping the centre."""
    width, height = image.size
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    box = (left, top, left + side, top + side)
    return image.resize((size, size), Image.Resampling.BICUBIC, box, reducing_gap=3.0)


class ImageFiles(Dataset[Tensor]):
    """Images decoded when asked for; small enough to be sent to loader workers."""

    def __init__(self, root: str, paths: Sequence[str], size: int) -> None:
        self.root = root
        self.paths = paths
        self.size = size

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Tensor:
        path = os.path.join(self.root, self.paths[index])
        try:
            return decode_image(path, self.size)
        except Unreadable as error:
            raise InputError(f"{shown(path)} cannot be read: {error}") from None


def decode_files(
    root: str,
    paths: Sequence[str],
    size: int,
    memory_limit: int,
    progress: Callable[[int], None] | None = None,
) -> tuple[Tensor | ImageFiles, dict[int, str]]:
    """All readable images, and the reason for each place in `paths` that is not among them.

    One uint8 tensor (N, 3, size, size) where that fits `memory_limit`, else files decoded when
    asked for; those too are decoded once here, so that training does not stop on the last one.
    `progress` is told how many files are done.
    """
    fits = len(paths) * 3 * size * size <= memory_limit
    images = torch.empty((len(paths) if fits else 0, 3, size, size), dtype=torch.uint8)
    unreadable: dict[int, str] = {}

    def decode(batch: range) -> int:
        for i in batch:
            try:
                image = decode_image(os.path.join(root, paths[i]), size)
                if fits:
                    images[i] = image
            except Unreadable as error:
                unreadable[i] = str(error)
        return len(batch)

    list_formats()  # plugins register themselves once, before threads could do so side by side
    batches = [range(i, min(i + BATCH, len(paths))) for i in range(0, len(paths), BATCH)]
    _run_all(decode, batches, progress)
    bad = dict(sorted(unreadable.items()))
    good = [i for i in range(len(paths)) if i not in bad]
    if fits:
        return (images[good] if bad else images), bad
    return ImageFiles(root, [paths[i] for i in good] if bad else paths, size), bad


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
