from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from PIL import Image
from torch import Tensor

from oddly.data.source import ImageFiles, decode_files
from oddly.errors import InputError


def folder_of(tmp_path: Path, number: int) -> list[str]:
    for i in range(number):
        Image.new("RGB", (10, 10), (i, i, i)).save(tmp_path / f"{i}.png")
    return [f"{i}.png" for i in range(number)]


def test_decode_files_keeps_order_and_tells_progress(tmp_path: Path) -> None:
    paths = folder_of(tmp_path, 70)
    told: list[int] = []
    images, bad = decode_files(ImageFiles(str(tmp_path), paths, 4), 10**6, told.append)
    assert isinstance(images, Tensor) and images[:, 0, 0, 0].tolist() == list(range(70))
    assert bad == {} and told[-1] == 70 and told == sorted(told)


@pytest.mark.parametrize("limit", [10**6, 100])
def test_decode_files_leaves_unreadable_ones_out(tmp_path: Path, limit: int) -> None:
    paths = folder_of(tmp_path, 5)
    (tmp_path / "1.png").write_bytes(b"")
    (tmp_path / "4.png").write_bytes(b"junk")
    images, bad = decode_files(ImageFiles(str(tmp_path), paths, 4), limit)
    assert bad == {1: "empty file", 4: "not an image"}
    assert isinstance(images, ImageFiles) == (limit == 100)
    assert [int(images[i][0, 0, 0]) for i in range(3)] == [0, 2, 3]


@pytest.mark.parametrize("limit", [10**6, 100])
def test_every_readable_image_is_seen_also_where_they_do_not_fit(
    tmp_path: Path, limit: int
) -> None:
    paths, seen = folder_of(tmp_path, 3), dict[int, int]()
    (tmp_path / "1.png").write_bytes(b"junk")
    see = lambda place, image: seen.update({place: int(image[0, 0, 0])})  # noqa: E731
    decode_files(ImageFiles(str(tmp_path), paths, 4), limit, see=see)
    assert seen == {0: 0, 2: 2}


def test_memory_limit_is_exact(tmp_path: Path) -> None:
    paths = folder_of(tmp_path, 3)
    assert isinstance(decode_files(ImageFiles(str(tmp_path), paths, 4), 3 * 3 * 16)[0], Tensor)
    assert isinstance(
        decode_files(ImageFiles(str(tmp_path), paths, 4), 3 * 3 * 16 - 1)[0], ImageFiles
    )


def test_image_files_travel_to_workers_and_name_what_vanished(tmp_path: Path) -> None:
    files = pickle.loads(pickle.dumps(ImageFiles(str(tmp_path), folder_of(tmp_path, 2), 4)))
    assert len(files) == 2 and files[1].shape == (3, 4, 4)
    (tmp_path / "1.png").unlink()
    with pytest.raises(InputError, match=r"1\.png cannot be read: no such file"):
        files[1]
