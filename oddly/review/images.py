"""The picture of an example: read only from the dataset's folder, re-encoded, bounded in size.

A page asks by the example's number, never by a path. The id behind the number is still not
trusted: wherever it leads (`..`, links, absolute paths), only files below the root are opened.
"""

from __future__ import annotations

import io
import os
import re
import stat
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image, ImageOps

from oddly.errors import InputError
from oddly.records import Run

MAX_PIXELS = 80_000_000  # a picture beyond this is refused before it is decoded
LOSSLESS_SIDE = 128  # up to here PNG, beyond JPEG: ten times faster than WebP at full size
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000")


class NoPicture(Exception):
    """There is no picture to show; the message says why, in a few words."""


class ImageSource(Protocol):
    """Where the pictures of a run come from."""

    def read(self, id: str) -> Image.Image:
        """The example's picture, upright, RGB, at most MAX_PIXELS; else `NoPicture`."""
        ...


class NoImages:
    """Pictures that were only ever in memory (digits, CIFAR)."""

    def read(self, id: str) -> Image.Image:
        raise NoPicture("this dataset has no picture files")


class ImageFiles:
    """Pictures that lie below one folder; ids are paths relative to it, or absolute ones in it."""

    def __init__(self, root: Path, base: Path | None = None) -> None:
        self.root = os.path.realpath(root)
        self._bases = [self.root, os.path.realpath(base or root)]
        _formats()  # Pillow's plugins load now, not under the first picture

    def find(self, id: str) -> str:
        """The real path of an example's file."""
        outside = False
        for name in _spellings(id):
            for base in self._bases:
                path = os.path.realpath(os.path.join(base, name))
                if not path.startswith(self.root.rstrip("/") + "/"):
                    outside = True
                elif os.path.lexists(path):
                    return path
        raise NoPicture("lies outside the dataset's folder" if outside else "the file is gone")

    def read(self, id: str) -> Image.Image:
        if "\0" in id:
            raise NoPicture("not a file's name")
        path = self.find(id)
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would block for ever
                raise NoPicture("not a file")
            with Image.open(path, formats=_formats()) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise NoPicture(f"too large to show: {image.width} × {image.height} pixels")
                return _to_rgb(_upright(image))
        except NoPicture:
            raise
        except Exception:  # decoders fail in every way there is; none may end the review
            raise NoPicture("the file cannot be read as a picture") from None


def find_images(run: Run, id: str, folder: Path | None = None) -> ImageSource:
    """Where this run's pictures lie: as its settings say, or below `folder`; `id` is one of its."""
    data = str(run.config.get("data") or "")
    path = Path(os.path.expanduser(data))
    base = path if path.is_dir() else path.parent
    if folder is not None:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder of pictures")
        return ImageFiles(folder, base)
    if path.is_dir() or path.is_file():
        return ImageFiles(base)
    if not os.path.splitext(id)[1]:  # digits, CIFAR: numbers, not files
        return NoImages()
    hint = "go where it was trained, or name their folder with --images"
    raise InputError(f"{data}: the pictures of this run are not there; {hint}")


def encode(image: Image.Image, side: int) -> tuple[bytes, str]:
    """The picture as fresh bytes no larger than `side` either way, and their type."""
    if max(image.size) > side:
        image.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=2.0)
    buffer = io.BytesIO()
    if max(image.size) <= LOSSLESS_SIDE:
        image.save(buffer, "PNG", compress_level=1)
        return buffer.getvalue(), "image/png"
    image.save(buffer, "JPEG", quality=92, subsampling=0)
    return buffer.getvalue(), "image/jpeg"


def _spellings(id: str) -> list[str]:
    """How the file of an id may be called: `path#2` is a repeat, `\\udcff` a byte not UTF-8."""
    names = [id, re.sub(r"#\d+$", "", id)]
    escaped = r"\\udc([89a-f][0-9a-f])"
    names += [re.sub(escaped, lambda m: chr(0xDC00 + int(m[1], 16)), name) for name in names]
    return list(dict.fromkeys(names))


@cache
def _formats() -> tuple[str, ...]:
    """Formats of pictures only: Pillow would also run Ghostscript on an EPS called .jpg."""
    Image.init()
    return tuple(name for name in _FORMATS if name in Image.OPEN)


def _upright(image: Image.Image) -> Image.Image:
    """Turned as the camera was held; a broken EXIF block is no reason to lose the picture."""
    image.draft(None, (2048, 2048))
    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except Exception:
        return image


def _to_rgb(image: Image.Image) -> Image.Image:
    """Any mode as RGB: deep greys scaled to their range, transparent parts on white."""
    if image.mode.startswith("I") or image.mode == "F":
        values = np.nan_to_num(np.asarray(image).astype(np.float32))
        low, high = float(values.min()), max(float(values.max()), float(values.min()) + 1e-9)
        return Image.fromarray(np.uint8((values - low) / (high - low) * 255)).convert("RGB")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")
