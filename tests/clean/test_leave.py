from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest
from PIL import Image

from oddly.clean import leave
from oddly.clean.leave import (
    check_copy_to,
    copy_cleaned,
    describe_copy,
    locate,
    write_verdicts_csv,
)
from oddly.data.source import ImageSource
from oddly.errors import InputError
from oddly.records import Run
from oddly.records.thumbnails import HIGHEST
from oddly.text_table import read_text_columns
from tests.clean.runs import write_run


def test_a_copy_keeps_the_layout_and_the_originals(photos: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in photos.rglob("*.png")}
    ids = sorted(path.relative_to(photos).as_posix() for path in before)
    run = write_run(tmp_path / "run", str(photos), ids, removed=4)
    assert copy_cleaned(run, tmp_path / "copy").files == len(ids) - 4
    copied = {p.relative_to(tmp_path / "copy").as_posix() for p in tmp_path.glob("copy/*/*.png")}
    assert copied == set(ids[4:])
    assert {path: path.read_bytes() for path in photos.rglob("*.png")} == before


@pytest.mark.parametrize("split", ["", "train/", "dev/", "eval/", "Validation/"])
def test_a_replaced_label_decides_the_folder(tmp_path: Path, split: str) -> None:
    """The run's labels are a, a table made them so: b/2.png belongs to a now."""
    ids = [f"{split}{name}" for name in ("a/1.png", "b/2.png", "b/old/2.png", "b/a/3.png")]
    for name in ids:
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_bytes(name.encode())
    run = write_run(tmp_path / "run", str(tmp_path / "data"), ids, removed=0)
    assert copy_cleaned(run, tmp_path / "copy").files == 4
    copied = {
        path.relative_to(tmp_path / "copy").as_posix(): path.read_text()
        for path in (tmp_path / "copy").rglob("*.png")
    }
    targets = [f"{split}a/{name}" for name in ("1.png", "2.png", "old/2.png", "a/3.png")]
    assert copied == dict(zip(targets, ids, strict=True))


def test_a_table_becomes_a_table_and_so_does_a_wish_for_csv(photos: Path, tmp_path: Path) -> None:
    ids = ["photos/red/red0.png", "photos/red/red1.png", "photos/red/red1.png#2"]
    (tmp_path / "labels.csv").write_text("path,label\n")
    run = write_run(tmp_path / "run", str(tmp_path / "labels.csv"), ids, removed=1)
    expected = f"path,label\n{photos}/red/red1.png,a\n{photos}/red/red1.png,a\n"
    copy_cleaned(run, tmp_path / "copy")
    assert (tmp_path / "copy/cleaned.csv").read_text() == expected
    copy_cleaned(run, tmp_path / "named.csv")
    assert (tmp_path / "named.csv").read_text() == expected


def test_a_linked_table_names_files_beside_the_link(photos: Path, tmp_path: Path) -> None:
    """As `load_table` reads it: relative to the folder where the user says the table lies."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/labels.csv").write_text("path,label\n")
    (tmp_path / "labels.csv").symlink_to("tables/labels.csv")
    ids = ["photos/red/red0.png", "photos/red/red1.png"]
    run = write_run(tmp_path / "run", str(tmp_path / "labels.csv"), ids, removed=1)
    copy_cleaned(run, tmp_path / "named.csv")
    assert (tmp_path / "named.csv").read_text() == f"path,label\n{photos}/red/red1.png,a\n"


def test_rows_of_a_dataset_stay_ids(tmp_path: Path) -> None:
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "dataset_info.json").touch()
    run = write_run(tmp_path / "run", str(tmp_path / "dataset"), ["train/0", "train/1"], removed=1)
    told = describe_copy(run, tmp_path / "copy", copy_cleaned(run, tmp_path / "copy"))
    assert told.startswith(f"{tmp_path}/copy/cleaned.csv, a table of 1 id and labels: a Hug")
    assert (tmp_path / "copy/cleaned.csv").read_text() == "id,label\ntrain/1,a\n"


class Rows:
    """Images that are rows: all the same."""

    def source(self, place: int) -> bytes:
        return b"BM"


def test_rows_that_review_shows_beside_a_suspect_are_pictured_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one was kept, and is a copy of the first."""
    run = write_run(tmp_path / "run", "x", [f"train/{i}" for i in range(400)], removed=1)
    rows = ("group,id,given_name,conflicting", "7,train/0,a,true", "7,train/399,b,true", "")
    (run.path / "duplicates.csv").write_text("\n".join(rows))
    monkeypatch.setattr(leave, "read_picture", lambda content, side: Image.new("RGB", (8, 8)))
    leave.store_pictures(run, cast(ImageSource, Rows()))
    kept = run.verdicts.score[1:].nlargest(HIGHEST).index  # which `oddly review --top` shows next
    assert {0, 399, *kept} < set(run.thumbnails) and len(run.thumbnails) <= 50 + HIGHEST


def test_places_where_no_copy_may_go(photos: Path, tmp_path: Path) -> None:
    source = str(photos)
    (tmp_path / "link").symlink_to(photos)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("")
    for target, words in (
        (photos, "not an empty folder"),
        (photos / "red" / "new", "inside the dataset"),
        (tmp_path / "link" / "new", "inside the dataset"),
        (tmp_path, "not an empty folder"),
        (tmp_path / "full", "not an empty folder"),
        (tmp_path / "full/x", "not an empty folder"),
    ):
        with pytest.raises(InputError, match=words):
            check_copy_to(target, source)
    check_copy_to(tmp_path / "new", source)
    with pytest.raises(InputError, match="no longer exists"):
        check_copy_to(tmp_path / "new", str(tmp_path / "gone"))


def test_a_table_never_replaces_a_file(photos: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    table.write_text("path,label\n")
    for source in (str(photos), str(table)):
        with pytest.raises(InputError, match="already exists"):
            check_copy_to(table, source)
    with pytest.raises(InputError, match="not an empty folder"):
        check_copy_to(photos, str(table))
    check_copy_to(tmp_path / "new.csv", str(table))


def test_a_first_file_that_is_gone_does_not_make_the_copy_a_table(
    photos: Path, tmp_path: Path
) -> None:
    ids = sorted(path.relative_to(photos).as_posix() for path in photos.rglob("*.png"))
    run = write_run(tmp_path / "run", str(photos), ids, removed=0)
    (photos / ids[0]).unlink()
    assert copy_cleaned(run, tmp_path / "copy").missing == [f"{ids[0]} (file not found)"]
    assert not (tmp_path / "copy" / "cleaned.csv").exists()


def test_where_nothing_is_kept_nothing_is_copied(photos: Path, tmp_path: Path) -> None:
    ids = sorted(path.relative_to(photos).as_posix() for path in photos.rglob("*.png"))
    run = write_run(tmp_path / "run", str(photos), ids, removed=len(ids))
    with pytest.raises(InputError, match="every example is a suspect"):
        copy_cleaned(run, tmp_path / "copy")


def test_what_is_gone_is_told_and_half_a_copy_is_none(photos: Path, tmp_path: Path) -> None:
    ids = sorted(path.relative_to(photos).as_posix() for path in photos.rglob("*.png"))
    run = write_run(tmp_path / "run", str(photos), ids, removed=4)
    (photos / ids[-1]).unlink()
    copied = copy_cleaned(run, tmp_path / "copy")
    assert copied.files == len(ids) - 5 and copied.missing == [f"{ids[-1]} (file not found)"]

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_cleaned(run, tmp_path / "half", stop)
    assert not (tmp_path / "half").exists() and not list(tmp_path.glob(".*"))


def test_bytes_that_are_no_utf8_are_copied(tmp_path: Path) -> None:
    (tmp_path / "data" / "a").mkdir(parents=True)
    try:
        for byte in (b"\xe9", b"\xea"):
            (tmp_path / "data" / "a" / os.fsdecode(byte + b".png")).write_bytes(byte)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    ids = ["a/\\udce9.png", "a/\\udcea.png"]
    run = write_run(tmp_path / "run", str(tmp_path / "data"), ids, removed=1)
    assert copy_cleaned(run, tmp_path / "copy").files == 1
    copied = tmp_path / "copy" / "a" / os.fsdecode(b"\xea.png")
    assert copied.read_bytes() == b"\xea"


def test_locate(tmp_path: Path) -> None:
    (tmp_path / "a#2").write_text("")
    (tmp_path / "b").write_text("")
    root = str(tmp_path)
    assert [locate(root, name) for name in ("a#2", "b#2", "c#2")] == [
        f"{root}/a#2",
        f"{root}/b",
        f"{root}/c#2",
    ]


def test_a_run_reads_back(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "x", ["1", "2"], removed=1)
    assert Run(tmp_path / "run").verdicts.keep.tolist() == [False, True]


def test_a_carriage_return_in_a_name_ends_no_line(tmp_path: Path) -> None:
    ids = ["a\r1.png", "=b\n2.png", "c,3.png"]
    run = write_run(tmp_path / "run", "x", ids, removed=1)
    write_verdicts_csv(run)
    wanted = {"id": ("id",), "label": ("given_name",)}
    assert read_text_columns(run.path / "verdicts.csv", wanted) == {"id": ids, "label": ["a"] * 3}
