"""Decode image files of any size and mode to uint8 (3, S, S)."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from oddly.pictures import read_picture

SUFFIXES = frozenset(
    [".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".gif", ".webp", ".avif", ".bmp"]
    + [".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k"]
)


def decode_image(source: str | bytes, size: int) -> Tensor:
    """A file, or its content, as uint8 (3, size, size): short side resized, centre cropped."""
    pixels = np.array(square(read_picture(source, size), size))
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def pixel_digest(source: str | bytes) -> bytes:
    """A hash of the pixels at full size, whatever the format of the file."""
    image = read_picture(source)
    return digest(f"{image.size}".encode() + image.tobytes())


def digest(content: bytes) -> bytes:
    """A hash of 16 bytes."""
    return hashlib.blake2b(content, digest_size=16).digest()


def square(image: Image.Image, size: int) -> Image.Image:
    """The centred square, resized: the same as resizing the short side and cropping the centre."""
    width, height = image.size
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    box = (left, top, left + side, top + side)
    return image.resize((size, size), Image.Resampling.BICUBIC, box, reducing_gap=3.0)
