"""What `oddly clean` can read, and what it says of what it cannot."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PIL import Image

import oddly
from oddly.clean.findings import summarise
from oddly.cli.findings import tell_findings
from oddly.errors import InputError
from tests.clean.conftest import write_pictures
from tests.clean.quick import QUICK, Listener, frozen, rows


def test_unreadable_images_are_listed_and_may_be_skipped(photos: Path, tmp_path: Path) -> None:
    (photos / "red" / "red3.png").write_bytes(b"junk")
    (photos / "blue" / "empty.png").write_bytes(b"")
    out = tmp_path / "run"
    with pytest.raises(
        InputError, match=r"2 of 37 images cannot be read.*\n.*--resume --skip-unread"
    ):
        oddly.clean(photos, out, **QUICK)
    assert rows(out / "unreadable.csv") == [
        {"id": "blue/empty.png", "reason": "empty file"},
        {"id": "red/red3.png", "reason": "not an image"},
    ]
    run = oddly.clean(out=out, resume=True, skip_unreadable=True)
    assert len(run.verdicts) == 35 and "red/red3.png" not in set(run.verdicts.id)


@pytest.mark.usefixtures("lost_is_closed")
def test_folders_that_cannot_be_read_are_listed_too(photos: Path, tmp_path: Path) -> None:
    (photos / "lost").mkdir()
    (photos / "red" / "red3.png").write_bytes(b"junk")
    run = oddly.clean(photos, tmp_path / "run", skip_unreadable=True, **QUICK)
    assert [row["id"] for row in rows(run.path / "unreadable.csv")] == ["lost/", "red/red3.png"]
    found = summarise(run)
    assert (found.unreadable, found.closed) == (1, 1)
    assert "1 image and 1 folder could not be read (unreadable.csv)" in tell_findings(found)


def test_every_split_is_judged(tmp_path: Path) -> None:
    truth = write_pictures(tmp_path / "photos" / "train", 8)
    write_pictures(tmp_path / "photos" / "val", 2)
    run = oddly.clean(tmp_path / "photos", tmp_path / "run", **QUICK)
    assert len(run.verdicts) == len(truth) + 6
    assert {name.split("/")[0] for name in run.verdicts.id} == {"train", "val"}


def test_tables_with_missing_files_repeats_and_lookalike_labels(
    photos: Path, tmp_path: Path
) -> None:
    paths = sorted(path.relative_to(tmp_path).as_posix() for path in photos.rglob("*.png"))
    lines = [f"{path},{path.split('/')[1]}" for path in paths]
    lines += ["gone.png,red", f"{paths[0]},Red", f"{paths[1]},Red "]
    table = tmp_path / "table.csv"
    table.write_text("path,label\n" + "\n".join(lines) + "\n")
    with pytest.raises(InputError, match="1 of 39 files named in .* does not exist: gone.png"):
        oddly.clean(table, tmp_path / "run", **QUICK)
    listener = Listener()
    run = oddly.clean(
        table, tmp_path / "run", skip_unreadable=True, overwrite=True, watcher=listener, **QUICK
    )
    assert len(run.verdicts) == 38 and f"{paths[0]}#2" in set(run.verdicts.id)
    assert any("differ only in case or spaces" in note for note in listener.notes)
    assert rows(tmp_path / "run/unreadable.csv")[0]["reason"] == "no such file or directory"
    duplicates = rows(tmp_path / "run/duplicates.csv")
    assert {row["conflicting"] for row in duplicates} == {"true"} and len(duplicates) == 4


def test_pictures_of_every_mode_and_name(tmp_path: Path, tiny_weights: Path) -> None:
    write_pictures(tmp_path / "photos", 6)
    folder = tmp_path / "photos" / "red" / "nested" / "überall 猫"
    folder.mkdir(parents=True)
    for mode in ("L", "1", "P", "RGBA", "LA", "I;16"):
        Image.new(mode, (20, 30)).save(folder / f"{mode.replace(';', '')}.png")
    Image.new("CMYK", (500, 20)).save(folder / "cmyk.jpg")
    run = oddly.clean(tmp_path / "photos", tmp_path / "run", **frozen(tiny_weights))
    assert len(run.verdicts) == 25
    assert "red/nested/überall 猫/cmyk.jpg" in set(run.verdicts.id)


def test_classes_of_one_image_are_kept(tmp_path: Path, tiny_weights: Path) -> None:
    write_pictures(tmp_path / "photos", 6)
    for i in range(30):
        folder = tmp_path / "photos" / f"rare{i}"
        folder.mkdir()
        Image.new("RGB", (12, 12), (i, i, i)).save(folder / "only.png")
    run = oddly.clean(tmp_path / "photos", tmp_path / "run", **frozen(tiny_weights))
    rare = run.verdicts[run.verdicts.id.str.startswith("rare")]
    assert len(rare) == 30 and rare.keep.all()


def test_a_hugging_face_folder(tmp_path: Path, photos: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    files = sorted(photos.rglob("*.png"))
    rows = {
        "image": [{"bytes": file.read_bytes(), "path": file.name} for file in files],
        "label": [file.parent.name for file in files],
    }
    (tmp_path / "hub").mkdir()
    pa.parquet.write_table(pa.table(rows), tmp_path / "hub" / "train-00000-of-00001.parquet")
    for name in ("fiftyone", "label-studio"):
        with pytest.raises(InputError, match=f"--export {name} needs image files, but a Hugging"):
            oddly.clean(tmp_path / "hub", tmp_path / "run", export=name, **QUICK)
    run = oddly.clean(tmp_path / "hub", tmp_path / "run", copy_to=tmp_path / "kept.csv", **QUICK)
    assert list(run.verdicts.id) == [f"train/{i}" for i in range(36)]
    assert (tmp_path / "kept.csv").read_text().startswith("id,label\n")
    suspects = run.verdicts.index[~run.verdicts.keep]
    assert set(suspects) <= set(run.thumbnails) and run.thumbnails
    assert "data:image/webp" in (run.path / "report.html").read_text()


def test_bad_sources(tmp_path: Path) -> None:
    write_pictures(tmp_path / "photos", 2)
    shutil.rmtree(tmp_path / "photos" / "red")
    shutil.rmtree(tmp_path / "photos" / "blue")
    (tmp_path / "one.csv").write_text("path,label\nphotos/green/green0.png,a\n")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
    for name, words in (
        ("gone", "no such file or folder"),
        ("photos", "only one class"),
        ("one.csv", "only one class"),
        ("cut.parquet", "cannot read"),
    ):
        with pytest.raises(InputError, match=words):
            oddly.clean(tmp_path / name, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="clean judges every image"):
        oddly.clean(tmp_path / "photos", tmp_path / "held", hold_out=0.2)
    with pytest.raises(InputError, match="nothing to clean"):
        oddly.clean()
    with pytest.raises(InputError, match="not empty and not a run folder"):
        oddly.clean(write_more(tmp_path), tmp_path / "photos")


def write_more(folder: Path) -> Path:
    write_pictures(folder / "more", 2)
    return folder / "more"
