"""Folders are cut the same way every time, and hold what can be looked at."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidence import cut_folders
from oddly.errors import InputError


def write(file: Path, grey: int = 0) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((8, 8), grey, np.uint8)).save(file)


def there(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_the_same_class_of_several_parts_is_one(tmp_path: Path) -> None:
    for part, label, name in (("train", "hat", "a"), ("test", "hat", "a"), ("test", "skirt", "b")):
        write(tmp_path / f"repo/{part}/{label}/{name}.png")
    (tmp_path / "repo/train/hat/broken.jpg").write_bytes(b"no picture")
    (tmp_path / "repo/train/hat/notes.txt").write_text("no picture either")
    cut_folders.cut("clothing", tmp_path / "repo", tmp_path / "out")
    assert there(tmp_path / "out/clothing") == [
        "hat/test-a.png",
        "hat/train-a.png",
        "skirt/test-b.png",
    ]
    with pytest.raises(InputError, match="no images of 'hands'"):
        cut_folders.cut("hands", tmp_path / "repo", tmp_path / "out")


def test_some_are_drawn_the_same_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(20):
        write(tmp_path / f"repo/Dataset/{i % 2}/{i}.JPG", i)
    monkeypatch.setattr(cut_folders, "EXAMPLES", 12)
    for out in ("one", "other"):
        cut_folders.cut("hands", tmp_path / "repo", tmp_path / out)
    drawn = there(tmp_path / "one/hands")
    assert len(drawn) == 12 and drawn == there(tmp_path / "other/hands")


def test_clip_art_is_named_once_and_by_the_outermost_folder(tmp_path: Path) -> None:
    write(tmp_path / "png/animals/birds/owl.png")
    write(tmp_path / "png/unsorted/cow.png")
    (tmp_path / "png/people").mkdir()
    (tmp_path / "png/people/owl.png").symlink_to(tmp_path / "png/animals/birds/owl.png")
    cut_folders.cut("clip art", tmp_path / "png", tmp_path / "out")
    assert there(tmp_path / "out/clip art") == ["animals/birds-owl.png"]


def test_what_is_too_large_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "owl.png")
    assert cut_folders.is_fit(tmp_path / "owl.png")
    monkeypatch.setattr(cut_folders, "LARGEST", 63)
    assert not cut_folders.is_fit(tmp_path / "owl.png")


def test_a_sketch_is_light_ink_on_black(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    ink = (draw.random((100, 784)) > 0.8).astype(float)
    lines = "\n".join(json.dumps(one.tolist()) for one in ink)
    (tmp_path / "things").mkdir()
    (tmp_path / "things/wine glass.ndjson.gz").write_bytes(gzip.compress(lines.encode()))
    cut_folders.cut("sketches", tmp_path / "things", tmp_path / "out")
    assert len(there(tmp_path / "out/sketches")) == 100
    pixels = np.array(Image.open(tmp_path / "out/sketches/wine glass/7.png"))
    assert (pixels == 255 * ink[7].reshape(28, 28)).all()


def test_of_many_things_thirty_are_drawn(tmp_path: Path) -> None:
    for i in range(40):
        (tmp_path / f"{i:02d}.ndjson.gz").write_bytes(b"")
    found = cut_folders.find_sketches(tmp_path)
    assert len(found) == 3_000 and len({one.label for one in found}) == 30
