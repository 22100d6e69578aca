from __future__ import annotations

from pathlib import Path

import pytest

from oddly.clean.leave import check_copy_to, copy_cleaned, locate
from oddly.errors import InputError
from oddly.records import Run
from tests.clean.runs import write_run


def test_a_copy_keeps_the_layout_and_the_originals(photos: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in photos.rglob("*.png")}
    ids = sorted(path.relative_to(photos).as_posix() for path in before)
    run = write_run(tmp_path / "run", str(photos), ids, removed=4)
    assert copy_cleaned(run, tmp_path / "copy") == len(ids) - 4
    copied = {p.relative_to(tmp_path / "copy").as_posix() for p in tmp_path.glob("copy/*/*.png")}
    assert copied == set(ids[4:])
    assert {path: path.read_bytes() for path in photos.rglob("*.png")} == before


def test_a_table_becomes_a_table_and_so_does_a_wish_for_csv(photos: Path, tmp_path: Path) -> None:
    ids = ["photos/red/red0.png", "photos/red/red1.png", "photos/red/red1.png#2"]
    (tmp_path / "labels.csv").write_text("path,label\n")
    run = write_run(tmp_path / "run", str(tmp_path / "labels.csv"), ids, removed=1)
    expected = f"path,label\n{photos}/red/red1.png,a\n{photos}/red/red1.png,a\n"
    copy_cleaned(run, tmp_path / "copy")
    assert (tmp_path / "copy/cleaned.csv").read_text() == expected
    copy_cleaned(run, tmp_path / "named.csv")
    assert (tmp_path / "named.csv").read_text() == expected


def test_rows_of_a_dataset_stay_ids(tmp_path: Path) -> None:
    (tmp_path / "dataset").mkdir()
    run = write_run(tmp_path / "run", str(tmp_path / "dataset"), ["train/0", "train/1"], removed=1)
    copy_cleaned(run, tmp_path / "copy")
    assert (tmp_path / "copy/cleaned.csv").read_text() == "id,label\ntrain/1,a\n"


def test_places_where_no_copy_may_go(photos: Path, tmp_path: Path) -> None:
    source = str(photos)
    (tmp_path / "link").symlink_to(photos)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("")
    for target, words in (
        (photos, "inside the source"),
        (photos / "red" / "new", "inside the source"),
        (tmp_path / "link" / "new", "inside the source"),
        (tmp_path, "holds the source"),
        (tmp_path / "full", "not empty"),
    ):
        with pytest.raises(InputError, match=words):
            check_copy_to(target, source)
    check_copy_to(tmp_path / "new", source)
    with pytest.raises(InputError, match="no longer there"):
        check_copy_to(tmp_path / "new", str(tmp_path / "gone"))


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
