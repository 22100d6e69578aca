from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import oddly
from oddly.clean import duplicates
from oddly.clean.duplicates import SAME_FILE, SAME_PIXELS, Duplicates, find_duplicates
from oddly.clean.findings import summarise
from oddly.data.base import Split
from oddly.data.images import pixel_digest
from oddly.data.source import ImageFiles
from oddly.report.gallery import Gallery
from oddly.review.suspects import Suspects
from tests.clean.test_api import QUICK, rows


def test_only_what_is_the_same_at_full_size_counts(tmp_path: Path) -> None:
    random = np.random.RandomState(0)
    pixels = random.randint(0, 255, (40, 40, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "0.png")
    shutil.copy(tmp_path / "0.png", tmp_path / "1.png")  # the same file
    Image.fromarray(pixels).save(tmp_path / "2.bmp")  # the same pixels
    pixels[0, 0] ^= 1
    Image.fromarray(pixels).save(tmp_path / "3.png")  # nearly
    paths = ["0.png", "1.png", "2.bmp", "3.png"]
    source = ImageFiles(str(tmp_path), paths, 4)
    split = Split(source, torch.tensor([0, 0, 1, 0]), paths)
    same = [b"x"] * 4  # as if the network saw no difference
    assert find_duplicates(split, source, same) == [Duplicates((0, 1, 2), (0, 0, 1), SAME_PIXELS)]


def test_one_of_each_content_is_decoded_at_full_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many copies of a placeholder, one saved in another format."""
    Image.new("RGB", (9, 9)).save(tmp_path / "0.png")
    Image.new("RGB", (9, 9)).save(tmp_path / "1.bmp")
    paths = ["0.png"] * 30 + ["1.bmp"]
    source, decoded = ImageFiles(str(tmp_path), paths, 4), list[str]()

    def look(path: str) -> bytes:
        decoded.append(Path(path).name)
        return pixel_digest(path)

    monkeypatch.setattr(duplicates, "pixel_digest", look)
    split = Split(source, torch.zeros(31, dtype=torch.int64), paths)
    (found,) = find_duplicates(split, source, [b"x"] * 31)
    assert (len(found.places), found.same) == (31, SAME_PIXELS)
    assert sorted(decoded) == ["0.png", "1.bmp"]


def test_conflicting_ones_come_first(tmp_path: Path) -> None:
    for i, grey in enumerate((1, 1, 2, 2, 3)):
        Image.new("L", (5, 5), grey).save(tmp_path / f"{i}.png")
    paths = [f"{i}.png" for i in range(5)]
    source = ImageFiles(str(tmp_path), paths, 5)
    split = Split(source, torch.tensor([0, 0, 0, 1, 0]), paths)
    found = find_duplicates(split, source, [b"a", b"a", b"b", b"b", b"c"])
    assert [group.places for group in found] == [(2, 3), (0, 1)]
    assert [group.conflicting for group in found] == [True, False]
    assert {group.same for group in found} == {SAME_FILE}


def test_one_that_has_gone_is_like_nothing_else(tmp_path: Path) -> None:
    Image.new("L", (5, 5)).save(tmp_path / "0.png")
    source = ImageFiles(str(tmp_path), ["0.png", "gone.png"], 5)
    split = Split(source, torch.tensor([0, 1]), ["0.png", "gone.png"])
    assert find_duplicates(split, source, [b"a", b"a"]) == []


def test_of_copies_under_two_labels_the_one_that_does_not_fit_is_a_suspect(
    photos: Path, tmp_path: Path
) -> None:
    shutil.copy(photos / "red" / "red1.png", photos / "blue" / "again.png")
    run = oddly.clean(photos, tmp_path / "run", **QUICK)
    said = run.verdicts.set_index("id")
    assert said.index[said.reason.notna()].tolist() == ["blue/again.png"]
    assert said.keep["red/red1.png"] and not said.keep["blue/again.png"]
    (shown,) = [it for it in Gallery.from_run(run, "score").suspects.words if "Same" in it]
    assert shown == "Same picture with another label: red (red/red1.png)"
    found = summarise(run)
    assert (found.duplicates, found.conflicting, found.contradicted) == (1, 1, 1)


def test_the_same_picture_under_two_labels_that_both_fit(photos: Path, tmp_path: Path) -> None:
    """All its copies, in every list and copy, until a person decides; then only the others."""
    all_fit = {**QUICK, "percentile": 100}
    copies = {"red/red1.png", "blue/again.png"}
    shutil.copy(photos / "red" / "red1.png", photos / "blue" / "again.png")
    shutil.copy(photos / "red" / "red2.png", photos / "red" / "same.png")  # one label: no suspects
    run = oddly.clean(
        photos, tmp_path / "run", export=["ids", "cleanlab"], copy_to=tmp_path / "copy", **all_fit
    )
    said = run.verdicts.set_index("id")
    assert set(said.index[said.reason == "same picture, another label"]) == copies
    assert not said.keep[sorted(copies)].any()
    assert set((run.path / "suspects.txt").read_text().splitlines()[:2]) == copies
    assert {row["id"] for row in rows(run.path / "verdicts.csv")[:2]} == copies
    scores = {row["id"]: row["label_score"] for row in rows(run.path / "cleanlab.csv")}
    assert {scores[name] for name in copies} == {"0.0"}
    assert not any((tmp_path / "copy" / name).exists() for name in copies)
    assert run.summary["removed"] == int((~said.keep).sum())
    found = summarise(run)
    assert (found.duplicates, found.conflicting, found.contradicted) == (2, 1, 2)
    assert set(Suspects.read(run).ids[:2]) == copies
    shown = Gallery.from_run(run, "score").suspects
    assert set(shown.ids[:2]) == copies
    assert set(shown.words[:2]) == {
        "Same picture with another label: red (red/red1.png)",
        "Same picture with another label: blue (blue/again.png)",
    }

    table = tmp_path / "labels.csv"
    table.write_text("id,label,remove,decided_by\nred/red1.png,red,no,person\n")
    run = oddly.clean(photos, tmp_path / "second", labels=table, **all_fit)
    keep = run.verdicts.set_index("id").keep
    assert keep["red/red1.png"] and not keep["blue/again.png"]

    table.write_text("id,label,remove\nblue/again.png,red,no\ngreen/green0.png,,yes\n")
    run = oddly.clean(photos, tmp_path / "third", labels=table, **all_fit)
    assert "reason" not in run.verdicts and summarise(run).conflicting == 0
    assert {row["given_name"] for row in rows(run.path / "duplicates.csv")} == {"red"}
