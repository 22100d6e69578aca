from __future__ import annotations

from pathlib import Path

import pytest

from oddly.data import DataOptions, load_data
from oddly.errors import InputError
from oddly.records import Run
from oddly.review.apply import Outcome, read_outcome
from oddly.review.copying import copy_cleaned
from oddly.review.session import Session
from tests.review.conftest import paint, write_run
from tests.review.test_apply import decided

__all__ = ["decided"]  # the fixture


def listing(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def outcome(labels: dict[str, str] | None = None, removed: list[str] | None = None) -> Outcome:
    from collections import Counter

    return Outcome(labels or {}, removed or [], Counter())


def test_a_cleaned_copy_and_untouched_originals(decided: Run, photos: Path, tmp_path: Path) -> None:
    before = {name: (photos / name).read_bytes() for name in listing(photos)}
    told: list[tuple[int, int]] = []
    done = copy_cleaned(
        decided, read_outcome(decided), tmp_path / "clean", progress=lambda *n: told.append(n)
    )
    assert listing(tmp_path / "clean") == [
        *("cat/0.png", "cat/2.png", "cat/6.png", "dog/4.png", "dog/7.png"),
        *("emu/1.png", "emu/5.png", "emu/8.png"),
    ]
    assert done.files == 8 and done.missing == [] and told[-1] == (8, 8)
    assert {name: (photos / name).read_bytes() for name in listing(photos)} == before
    assert len(load_data(str(tmp_path / "clean"), DataOptions()).train) == 8
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_splits_folders_below_and_names_that_meet(tmp_path: Path) -> None:
    ids = ["train/cat/a.png", "train/dog/2019/a.png", "train/emu/a.png", "train/cat/A.png"]
    ids.append("dev/dog/2018/a.png")
    for id in ids:
        paint(tmp_path / "data" / id)
    run = write_run(tmp_path / "run", ids, tmp_path / "data")
    changed = {"train/emu/a.png": "cat", "train/dog/2019/a.png": "cat", "train/cat/A.png": "cat"}
    copy_cleaned(run, outcome(changed), tmp_path / "clean")
    assert listing(tmp_path / "clean") == [
        "cat/2019/a.png",
        "cat/A-3.png",
        "cat/a-2.png",
        "cat/a.png",
        "dog/2018/a.png",
    ]


def test_labels_that_a_table_had_replaced(tmp_path: Path) -> None:
    """The run calls dog/a.png a cat already: the old folder's name goes, it does not pile up."""
    ids = ["dog/a.png", "train/emu/b.png", "cat/c.png"]
    for id in ids:
        paint(tmp_path / "data" / id)
    run = write_run(tmp_path / "run", ids, tmp_path / "data")
    copy_cleaned(run, outcome(), tmp_path / "clean")
    assert listing(tmp_path / "clean") == ["cat/a.png", "dog/b.png", "emu/c.png"]


def test_labels_cannot_lead_out_of_the_copy(tmp_path: Path) -> None:
    names = ["..", "../../up", "/etc"]
    ids = ["a.png", "b.png", str(tmp_path / "data" / "c.png")]
    for id in ids:
        paint(tmp_path / "data" / id)
    run = write_run(tmp_path / "run", ids, tmp_path / "data", class_names=names)
    copy_cleaned(run, outcome(), tmp_path / "deep" / "clean")
    assert listing(tmp_path / "deep") == [
        "clean/_../a.png",
        "clean/_.._.._up/b.png",
        "clean/_etc/c.png",
    ]


def test_files_that_are_gone_are_named(decided: Run, photos: Path, tmp_path: Path) -> None:
    (photos / "dog" / "4.png").unlink()
    done = copy_cleaned(decided, read_outcome(decided), tmp_path / "clean")
    assert done.files == 7 and done.missing == ["dog/4.png (file not found)"]


def test_bad_destinations(decided: Run, photos: Path, tmp_path: Path) -> None:
    result = read_outcome(decided)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for place, reason in (
        (tmp_path / "full", "not an empty folder"),
        (photos / "clean", "inside the dataset itself"),
        (photos, "not an empty folder"),
    ):
        with pytest.raises(InputError, match=reason):
            copy_cleaned(decided, result, place)
    (tmp_path / "empty").mkdir()
    assert copy_cleaned(decided, result, tmp_path / "empty").files == 8


def test_pictures_that_are_no_files(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ["train/0", "train/1"], "digits")
    with pytest.raises(InputError, match="its pictures are not files"):
        copy_cleaned(run, outcome(), tmp_path / "clean")


def test_rows_of_a_dataset_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    run = write_run(tmp_path / "run", ["train/0", "train/1"], tmp_path / "hub")
    with pytest.raises(InputError, match="none of the 2 files can be read"):
        copy_cleaned(run, outcome(), tmp_path / "clean")
    assert not (tmp_path / "clean").exists()


def test_an_interrupted_copy_leaves_nothing(decided: Run, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_cleaned(decided, read_outcome(decided), tmp_path / "clean", progress=stop)
    assert not (tmp_path / "clean").exists() and list(tmp_path.glob(".*")) == []


def test_the_session_of_a_copied_dataset(decided: Run, tmp_path: Path) -> None:
    """The run still finds its pictures when the dataset moved: --images."""
    copy_cleaned(decided, outcome(), tmp_path / "moved")
    session = Session(decided, images=tmp_path / "moved")
    assert session.images.read("dog/4.png").size == (8, 6)
    session.decisions.close()
