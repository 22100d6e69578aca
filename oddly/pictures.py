"""Open any picture file safely, and make small pictures for pages. No torch here."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from oddly.errors import first_line, shown

SIDE = 96
"""Longest side of a small picture, in pixels."""
MOST_BYTES = 3_000
"""Size limit of a small picture; 5,000 of them, as base64 text, take 20 MB."""
TINY = 16  # pictures up to this many pixels a side are stored without loss: every pixel counts
# (side, quality), tried in turn until a picture is small enough; usually the first one is.
_TRIES = ((SIDE, 80), (SIDE, 55), (72, 50), (48, 40), (32, 30))


class Unreadable(Exception):
    """A picture cannot be read; the message is the reason, in a few words."""


def read_picture(
    source: str | bytes, side: int | None = None, most_pixels: int = sys.maxsize
) -> Image.Image:
    """A file, or its content, as an upright RGB picture.

    With `side`, a large JPEG is decoded at a reduced size that suffices for `side` pixels.
    `most_pixels` limits what is decoded, in addition to Pillow's limit against bombs.
    """
    with _opened(source) as image:
        if side is not None:
            image.draft(None, (2 * side, 2 * side))  # reduces the size at which a JPEG is decoded
        if image.width * image.height > most_pixels:
            raise Unreadable(f"too many pixels: {image.width} × {image.height}")
        return _to_rgb(_upright(image))


def picture_size(source: str | bytes) -> tuple[int, int]:
    """Width and height from the file's header."""
    with _opened(source) as image:
        return image.size


def file_names(id: str) -> list[str]:
    """The names that the file of an example may have, the likeliest first.

    The id `path#2` is the second row of a table with that file; `\\udcff` is a byte that is not
    UTF-8.
    """
    names = [id, re.sub(r"#\d+$", "", id)]
    escape = r"\\u(dc[89a-f][0-9a-f])"
    names += [re.sub(escape, lambda found: chr(int(found[1], 16)), name) for name in names]
    return list(dict.fromkeys(names))


@contextmanager
def _opened(source: str | bytes) -> Iterator[Image.Image]:
    """The picture, not yet decoded; whatever fails, here or in the body, becomes `Unreadable`."""
    try:
        _check_source(source)
        file = io.BytesIO(source) if isinstance(source, bytes) else source
        with Image.open(file, formats=list_formats()) as image:
            yield image
    except Unreadable:
        raise
    except UnidentifiedImageError:
        raise Unreadable("not an image") from None
    except Image.DecompressionBombError:
        raise Unreadable("far too many pixels") from None
    except Exception as error:  # decoders raise all kinds of errors; none may end the run
        raise Unreadable(_reason(error)) from None


@cache
def list_formats() -> tuple[str, ...]:
    """Allowed formats: without a list, Pillow would run Ghostscript on an EPS called .jpg."""
    Image.init()
    wanted = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000")
    return tuple(name for name in wanted if name in Image.OPEN)


def shrink(picture: Image.Image) -> bytes:
    """A small WebP of at most `SIDE` pixels a side and `MOST_BYTES` bytes, never enlarged."""
    if max(picture.size) <= TINY:
        return _encode(picture, lossless=True)
    small, content = picture.copy(), b""
    for side, quality in _TRIES:
        small.thumbnail((side, side), Image.Resampling.BICUBIC, reducing_gap=3.0)
        content = _encode(small, quality=quality)
        if len(content) <= MOST_BYTES:
            break
    return content


def from_pixels(pixels: NDArray[np.uint8]) -> Image.Image:
    """(C, H, W) as an RGB picture: the first three channels, or the first one as grey."""
    channels = pixels[:3] if len(pixels) >= 3 else pixels[:1].repeat(3, axis=0)
    return Image.fromarray(np.ascontiguousarray(channels.transpose(1, 2, 0)))


def _encode(picture: Image.Image, **options: Any) -> bytes:
    content = io.BytesIO()
    picture.save(content, "WEBP", method=2, **options)
    return content.getvalue()


def _check_source(source: str | bytes) -> None:
    """Refuse what is not a regular file (a pipe would block), and empty files."""
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
    """A few words on one line, without the path, which the caller knows."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return shown(first_line(error))[:100]


def _upright(image: Image.Image) -> Image.Image:
    """Rotated as EXIF says; a broken EXIF block is ignored."""
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
    """16-bit greyscale is scaled (Pillow would clip it to white); floats are 0..1 or 0..255."""
    values = np.nan_to_num(np.asarray(image).astype(np.float64))
    if image.mode == "F":
        values *= 255 if values.max() <= 1 else 1
    elif image.mode != "I" or values.max() > 255:
        values /= 257  # 65,535 -> 255
    grey = np.rint(values.clip(0, 255)).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")
