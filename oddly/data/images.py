"""Image files of any size and mode become uint8 (3, S, S); those that cannot are named."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from oddly.data.listing import shown

SUFFIXES = frozenset(
    [".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".gif", ".webp", ".avif", ".bmp"]
    + [".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k"]
)


class Unreadable(Exception):
    """An image file that cannot be decoded; the message is the reason, in a few words."""


def decode_image(source: str | bytes, size: int) -> Tensor:
    """A file, or its content, as uint8 (3, size, size): short side resized, centre cropped."""
    pixels = np.array(_read(source, lambda image: square(image, size), 2 * size))
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def pixel_digest(source: str | bytes) -> bytes:
    """What the picture shows at its full size, whatever the file's format; 16 bytes."""
    image = _read(source, lambda image: image)
    return hashlib.blake2b(f"{image.size}".encode() + image.tobytes(), digest_size=16).digest()


def image_size(source: str | bytes) -> tuple[int, int]:
    """Width and height as the file's header tells them."""
    try:
        _check_source(source)
        with Image.open(_openable(source), formats=formats()) as image:
            return image.size
    except Unreadable:
        raise
    except Exception as error:
        raise _unreadable(error) from None


def _read(
    source: str | bytes, finish: Callable[[Image.Image], Image.Image], draft: int | None = None
) -> Image.Image:
    """The picture upright in RGB, passed through `finish`; whatever fails becomes `Unreadable`."""
    try:
        _check_source(source)
        with Image.open(_openable(source), formats=formats()) as image:
            if draft is not None:
                image.draft(None, (draft, draft))  # a JPEG is decoded no larger than useful
            return finish(_to_rgb(_upright(image)))
    except Unreadable:
        raise
    except Exception as error:  # decoders fail in every way there is; none may end the run
        raise _unreadable(error) from None


def _openable(source: str | bytes) -> str | io.BytesIO:
    return io.BytesIO(source) if isinstance(source, bytes) else source


def _unreadable(error: Exception) -> Unreadable:
    if isinstance(error, UnidentifiedImageError):
        return Unreadable("not an image")
    if isinstance(error, Image.DecompressionBombError):
        return Unreadable("far too many pixels")
    return Unreadable(_reason(error))


@cache
def formats() -> tuple[str, ...]:
    """Formats of pictures only: Pillow would also run Ghostscript on an EPS called .jpg."""
    Image.init()
    wanted = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000")
    return tuple(name for name in wanted if name in Image.OPEN)


def _check_source(source: str | bytes) -> None:
    """Refuse what would block (a pipe) or mislead (an empty file) the decoder."""
    if isinstance(source, bytes):
        if not source:
            raise Unreadable("empty file")
        return
    status = os.stat(source)
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


def square(image: Image.Image, size: int) -> Image.Image:
    """The centred square, resized: the same as resizing the short side and cropping the centre."""
    width, height = image.size
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    box = (left, top, left + side, top + side)
    return image.resize((size, size), Image.Resampling.BICUBIC, box, reducing_gap=3.0)
