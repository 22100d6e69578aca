from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from oddly.data.images import decode_image
from oddly.pictures import Unreadable


def decode(path: Path, size: int = 8) -> Tensor:
    return decode_image(str(path), size)


def colour(path: Path, size: int = 8) -> list[int]:
    """The colour of a picture that has only one."""
    image = decode(path, size)
    assert image.shape == (3, size, size) and image.dtype == torch.uint8
    assert (image == image[:, :1, :1]).all()
    return image[:, 0, 0].tolist()


def png(width: int, height: int, pixels: bytes = b"") -> bytes:
    """A PNG whose header may lie about its size."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def test_an_image_of_the_right_size_keeps_its_pixels(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert np.array_equal(decode(tmp_path / "a.png").permute(1, 2, 0).numpy(), pixels)


def test_short_side_is_resized_and_the_centre_cropped(tmp_path: Path) -> None:
    pixels = np.zeros((4, 12, 3), dtype=np.uint8)
    pixels[:, 4:8] = (10, 20, 30)  # the centred square
    pixels[:, :4] = 255
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    assert colour(tmp_path / "wide.png", 4) == [10, 20, 30]
    Image.fromarray(pixels.transpose(1, 0, 2)).save(tmp_path / "tall.png")
    assert colour(tmp_path / "tall.png", 4) == [10, 20, 30]


def test_resize_is_close_to_resize_then_crop(tmp_path: Path) -> None:
    y, x = np.mgrid[0:60, 0:90]
    pixels = np.stack([2 * x, 4 * y, x + y], 2).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    slow = Image.fromarray(pixels).resize((24, 16), Image.Resampling.BICUBIC).crop((4, 0, 20, 16))
    difference = decode(tmp_path / "a.png", 16).permute(1, 2, 0).numpy() - np.asarray(slow, int)
    assert np.abs(difference).max() <= 3


@pytest.mark.parametrize(
    ("mode", "value", "expected"),
    [
        ("L", 77, [77, 77, 77]),
        ("1", 1, [255, 255, 255]),
        ("RGB", (1, 2, 3), [1, 2, 3]),
        ("RGBA", (255, 0, 0, 255), [255, 0, 0]),
        ("RGBA", (0, 0, 0, 0), [255, 255, 255]),
        ("RGBA", (0, 0, 0, 51), [204, 204, 204]),
        ("LA", (0, 0), [255, 255, 255]),
        ("I;16", 257 * 100, [100, 100, 100]),
    ],
)
def test_modes_of_png(tmp_path: Path, mode: str, value: object, expected: list[int]) -> None:
    Image.new(mode, (20, 30), value).save(tmp_path / "a.png")  # type: ignore[arg-type]
    assert colour(tmp_path / "a.png") == expected


@pytest.mark.parametrize(
    ("mode", "value", "expected"),
    [("F", 0.2, 51), ("F", 200.0, 200), ("I", 65535, 255), ("I", 200, 200), ("I;16B", 25700, 100)],
)
def test_deep_tiff(tmp_path: Path, mode: str, value: float, expected: int) -> None:
    Image.new(mode, (9, 9), value).save(tmp_path / "a.tif")
    assert colour(tmp_path / "a.tif") == [expected] * 3


def test_palette_with_and_without_transparency(tmp_path: Path) -> None:
    image = Image.new("P", (10, 10), 1)
    image.putpalette([9, 9, 9, 40, 50, 60])
    image.save(tmp_path / "a.png")
    assert colour(tmp_path / "a.png") == [40, 50, 60]
    image.save(tmp_path / "b.png", transparency=b"\xff\x00")  # entry 1 is see-through
    assert colour(tmp_path / "b.png") == [255, 255, 255]
    image.save(tmp_path / "c.gif")
    assert colour(tmp_path / "c.gif") == [40, 50, 60]


def test_cmyk_jpeg(tmp_path: Path) -> None:
    Image.new("CMYK", (32, 32), (0, 255, 255, 0)).save(tmp_path / "a.jpg")
    red, green, blue = colour(tmp_path / "a.jpg")
    assert red > 240 and green < 15 and blue < 15


def test_exif_orientation_turns_the_picture(tmp_path: Path) -> None:
    pixels = np.zeros((16, 16, 3), dtype=np.uint8)
    pixels[:8] = 255  # white above black
    exif = Image.Exif()
    exif[0x0112] = 6  # held so that the stored top is the real right side
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    image = decode(tmp_path / "a.png", 16)
    assert image[:, :, 8:].eq(255).all() and image[:, :, :8].eq(0).all()


def test_broken_exif_does_not_lose_the_picture(tmp_path: Path) -> None:
    Image.new("RGB", (16, 16), (9, 9, 9)).save(tmp_path / "a.png", exif=b"Exif\x00\x00garbage")
    assert colour(tmp_path / "a.png") == [9, 9, 9]


def test_a_large_jpeg_is_decoded_like_a_small_one(tmp_path: Path) -> None:
    y, x = np.mgrid[0:512, 0:512]
    pixels = np.stack([x // 2, y // 2, (x + y) // 4], 2).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.jpg", quality=95)
    slow = Image.fromarray(pixels).resize((32, 32), Image.Resampling.BICUBIC)
    difference = decode(tmp_path / "a.jpg", 32).permute(1, 2, 0).numpy() - np.asarray(slow, int)
    assert np.abs(difference).max() <= 8


def test_one_pixel_and_one_row(tmp_path: Path) -> None:
    for name, size in (("a", (1, 1)), ("b", (3000, 1)), ("c", (1, 3000))):
        Image.new("RGB", size, (5, 6, 7)).save(tmp_path / f"{name}.png")
        assert colour(tmp_path / f"{name}.png") == [5, 6, 7]


def good_jpeg(path: Path) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return path.read_bytes()


def test_reasons(tmp_path: Path) -> None:
    file = tmp_path / "a.jpg"
    whole = good_jpeg(file)
    hostile = {
        b"": "empty file",
        b"<html>404 not found</html>": "not an image",
        whole[:20]: ".",
        whole[: len(whole) // 2]: "truncated",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n": "not an image",
        png(60_000, 60_000): "far too many pixels",
        png(50, 50, b"\x00" * 10): ".",
        png(0, 5): ".",
    }
    for content, reason in hostile.items():
        file.write_bytes(content)
        with pytest.raises(Unreadable, match=reason) as caught:
            decode(file)
        assert "\n" not in str(caught.value) and "a.jpg" not in str(caught.value)


def test_missing_folder_and_pipe(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no such file"):
        decode(tmp_path / "nowhere.png")
    with pytest.raises(Unreadable, match="not a file"):
        decode(tmp_path)
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(Unreadable, match="not a file"):  # and does not wait for a writer
        decode(tmp_path / "pipe.png")
