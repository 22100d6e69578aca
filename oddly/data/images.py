"""Image files of any size and mode become uint8 (3, S, S); those that cannot are named."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import cache

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor
from torch.utils.data import Dataset

from oddly.data.listing import shown
from oddly.errors import InputError

SUFFIXES = frozenset(
    [".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".gif", ".webp", ".avif", ".bmp"]
    + [".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k"]
)
BATCH = 32
"""Files handed to a thread at once."""


class Unreadable(Exception):
    """An image file that cannot be decoded; the message is the reason, in a few words."""


def decode_image(path: str, size: int) -> Tensor:
    """One file as uint8 (3, size, size): short side resized to `size`, centre cropped."""
    try:
        _check_file(path)
        with Image.open(path, formats=_formats()) as image:
            image.draft(None, (2 * size, 2 * size))  # a JPEG is decoded no larger than useful
            pixels = np.array(_square(_to_rgb(_upright(image)), size))
    except Unreadable:
        raise
    except UnidentifiedImageError:
        raise Unreadable("not an image") from None
    except Image.DecompressionBombError:
        raise Unreadable("far too many pixels") from None
    except Exception as error:  # decoders fail in every way there is; none may end the run
        raise Unreadable(_reason(error)) from None
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


@cache
def _formats() -> tuple[str, ...]:
    """Formats of pictures only: Pillow would also run Ghostscript on an EPS called .jpg."""
    Image.init()
    wanted = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000")
    return tuple(name for name in wanted if name in Image.OPEN)


def _check_file(path: str) -> None:
    """Refuse what would block (a pipe) or mislead (an empty file) the decoder."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("not a file")
    if status.st_size == 0:
        raise Unreadable("empty file")


def _reason(error: Exception) -> str:
    """A few words on one line, without the path the caller knows anyway."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    lines = str(error).splitlines()
    return shown(lines[0])[:100] if lines and lines[0] else type(error).__name__


def _upright(image: Image.Image) -> Image.Image:
    """Turned as the camera was held; a broken EXIF block is no reason to lose the picture."""
    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except Exception:
        return image


def _to_rgb(image: Image.Image) -> Image.Image:
    """Any mode as RGB, transparent parts on white."""
    if image.mode.startswith("I") or image.mode == "F":
        return _deep_to_rgb(image)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image).convert("RGB")
    return image.convert("RGB")


def _deep_to_rgb(image: Image.Image) -> Image.Image:
    """16-bit greyscale scaled (Pillow would clip it to white); floats read as 0..1, or 0..255."""
    values = np.nan_to_num(np.asarray(image).astype(np.float64))
    if image.mode == "F":
        values *= 255 if values.max() <= 1 else 1
    elif image.mode != "I" or values.max() > 255:
        values /= 257  # 65,535 -> 255
    grey = np.rint(values.clip(0, 255)).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")


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

    _formats()  # plugins register themselves once, before threads could do so side by side
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
