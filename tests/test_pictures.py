from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from oddly.pictures import (
    MOST_BYTES,
    SIDE,
    Unreadable,
    file_names,
    from_pixels,
    read_picture,
    shrink,
)

RNG = np.random.default_rng(0)


def opened(content: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(content))
    image.load()
    return image


@pytest.mark.parametrize("shape", [(2000, 1000), (17, 5000), (96, 96), (1, 1), (4000, 1)])
def test_a_small_picture_is_small_and_never_enlarged(shape: tuple[int, int]) -> None:
    noise = Image.fromarray(RNG.integers(0, 256, (*shape, 3), dtype=np.uint8))  # the worst there is
    content = shrink(noise)
    assert len(content) <= MOST_BYTES
    small = opened(content)
    assert small.format == "WEBP"
    assert max(small.size) <= min(SIDE, max(noise.size))


def test_shape_and_colour_stay() -> None:
    pixels = np.zeros((300, 600, 3), np.uint8)
    pixels[:, :300] = (250, 10, 20)
    small = opened(shrink(Image.fromarray(pixels))).convert("RGB")
    assert small.size == (SIDE, SIDE // 2)
    left, right = np.asarray(small)[24, 12], np.asarray(small)[24, 84]
    assert np.abs(left.astype(int) - (250, 10, 20)).max() < 12 and right.max() < 12


def test_pixels_of_any_number_of_channels() -> None:
    pixels = RNG.integers(0, 256, (4, 5, 6), dtype=np.uint8)
    assert np.array_equal(np.asarray(from_pixels(pixels)), pixels[:3].transpose(1, 2, 0))
    for few in (1, 2):
        grey = np.asarray(from_pixels(pixels[:few]))
        assert (grey == pixels[0][:, :, None]).all() and grey.shape == (5, 6, 3)


def test_too_many_pixels_are_not_decoded(tmp_path: Path) -> None:
    Image.new("RGB", (200, 100)).save(tmp_path / "a.png")
    assert read_picture(str(tmp_path / "a.png"), 8, most_pixels=20_000).size == (200, 100)
    with pytest.raises(Unreadable, match="too many pixels: 200 × 100"):
        read_picture(str(tmp_path / "a.png"), 8, most_pixels=19_999)


def test_ids_lead_to_files() -> None:
    assert file_names("a/b.png") == ["a/b.png"]
    assert file_names("a/b.png#12") == ["a/b.png#12", "a/b.png"]
    assert file_names("b\\udcff.png") == ["b\\udcff.png", "b\udcff.png"]
    assert file_names("line\n.png#2")[1] == "line\n.png"
