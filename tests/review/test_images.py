from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from oddly.errors import InputError
from oddly.pictures import Unreadable, shrink
from oddly.records import Run, RunWriter
from oddly.review.images import FirstOf, NoImages, PictureFiles, StoredPictures, encode, find_images
from tests.review.conftest import paint, write_run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    paint(tmp_path / "data" / "cat" / "a.png")
    paint(tmp_path / "data" / ".." / "secret.png")
    paint(tmp_path / "data2" / "sibling.png")
    return tmp_path / "data"


@pytest.mark.parametrize(
    "id",
    [
        *("../secret.png", "cat/../../secret.png", "./../secret.png", "cat/link.png"),
        *("folder/secret.png", "../data2/sibling.png", "{}/../secret.png", "/etc/passwd"),
        *("..", ".", "/", "", "../data", "//etc/passwd"),
    ],
)
def test_nothing_outside_the_root_is_read(root: Path, id: str) -> None:
    (root / "cat" / "link.png").symlink_to(root.parent / "secret.png")
    (root / "folder").symlink_to(root.parent)
    with pytest.raises(Unreadable, match=r"outside|not a file"):
        PictureFiles(root).read(id.format(root))


@pytest.mark.parametrize(
    "id", ["%2e%2e/secret.png", "..%2fsecret.png", "cat/%2e%2e/%2e%2e/secret.png", "..\\secret.png"]
)
def test_encoded_paths_mean_nothing(root: Path, id: str) -> None:
    with pytest.raises(Unreadable, match="not found"):
        PictureFiles(root).read(id)


def test_what_belongs_to_the_dataset_is_read(root: Path) -> None:
    (root / "inner.png").symlink_to(root / "cat" / "a.png")
    (root.parent / "alias").symlink_to(root)
    ids = ["cat/a.png", "./cat/a.png", "cat/a.png#2", "inner.png", str(root / "cat" / "a.png")]
    for files in (PictureFiles(root), PictureFiles(root.parent / "alias")):
        for id in ids:
            assert files.read(id).size == (8, 6)


def test_a_name_with_a_hash_is_a_name_first(root: Path) -> None:
    Image.new("RGB", (3, 3)).save(root / "cat" / "a.png#2", "PNG")
    assert PictureFiles(root).read("cat/a.png#2").size == (3, 3)


def test_names_that_are_not_utf8(root: Path) -> None:
    name = os.fsdecode(b"caf\xe9.png")
    try:
        paint(root / name)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert PictureFiles(root).read("caf\\udce9.png").size == (8, 6)


def test_a_table_beside_its_pictures(root: Path) -> None:
    """Relative to the table, `--images` naming the folder that may be read."""
    files = PictureFiles(root.parent / "data2", base=root)
    assert files.read("../data2/sibling.png").size == (8, 6)
    assert files.read("sibling.png").size == (8, 6)
    with pytest.raises(Unreadable, match="outside"):
        files.read("../secret.png")


def test_absolute_paths_that_the_run_lists_are_read_and_no_others(
    root: Path, tmp_path: Path
) -> None:
    """A table in one folder, its pictures in others: common, and nobody named a folder."""
    paint(tmp_path / "far" / "a.png")
    paint(tmp_path / "far" / "unlisted.png")
    (tmp_path / "far" / "link.png").symlink_to(tmp_path / "secret.png")
    far = str(tmp_path / "far")
    listed = [f"{far}/a.png", f"{far}/a.png#2", f"{far}/link.png", f"{far}/../secret.png"]
    relative = "../secret.png"  # of a table that lies in data/
    run = write_run(tmp_path / "r", [*listed, f"{far}/gone.png", relative], root / "t.csv")
    (root / "t.csv").touch()
    files = find_images(run, listed[0])
    assert files.read(listed[0]).size == files.read(listed[1]).size == (8, 6)
    for id in (*listed[2:], relative, f"{far}/unlisted.png", f"{far}//a.png", str(tmp_path / "x")):
        with pytest.raises(Unreadable, match="outside .* --images"):
            files.read(id)
    with pytest.raises(Unreadable, match="not found"):
        files.read(f"{far}/gone.png")
    with pytest.raises(Unreadable, match="outside"):  # whoever names a folder means that one
        find_images(run, listed[0], root).read(listed[0])


def test_what_cannot_be_shown_says_why(root: Path) -> None:
    (root / "empty.png").touch()
    (root / "text.png").write_text("hello")
    whole = (root / "cat" / "a.png").read_bytes()
    (root / "torn.png").write_bytes(whole[: len(whole) // 2])
    os.mkfifo(root / "pipe.png")
    reasons = {
        "gone.png": "not found",
        "empty.png": "empty file",
        "text.png": "not an image",
        "torn.png": "not an image",
        "pipe.png": "not a file",
        "cat": "not a file",
        "a\0b.png": "not a file name",
    }
    for id, reason in reasons.items():
        with pytest.raises(Unreadable, match=reason):
            PictureFiles(root).read(id)


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it is huge."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 99))


def test_bombs_are_refused_before_they_are_decoded(root: Path) -> None:
    (root / "large.png").write_bytes(bomb(9000, 9000))
    (root / "huge.png").write_bytes(bomb(60_000, 60_000))
    with pytest.raises(Unreadable, match="too many pixels: 9000 × 9000"):
        PictureFiles(root).read("large.png")
    with pytest.raises(Unreadable, match="far too many pixels"):  # Pillow's own limit
        PictureFiles(root).read("huge.png")


def test_every_mode_becomes_rgb(root: Path) -> None:
    deep = np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)
    Image.fromarray(deep).save(root / "deep.png")
    Image.new("RGBA", (4, 4), (255, 0, 0, 0)).save(root / "clear.png")
    Image.new("P", (4, 4)).save(root / "palette.gif")
    Image.new("CMYK", (4, 4)).save(root / "cmyk.jpg")
    files = PictureFiles(root)
    assert files.read("clear.png").getpixel((0, 0)) == (255, 255, 255)
    grey = files.read("deep.png")
    assert (grey.getpixel((0, 0)), grey.getpixel((7, 7))) == ((0, 0, 0), (255, 255, 255))
    assert files.read("palette.gif").mode == files.read("cmyk.jpg").mode == "RGB"


def test_pictures_are_made_anew_and_bounded() -> None:
    small, kind = encode(Image.new("RGB", (32, 20), "blue"), 1024)
    assert kind == "image/png" and Image.open(io.BytesIO(small)).size == (32, 20)
    large, kind = encode(Image.new("RGB", (4000, 1000), "blue"), 1024)
    assert kind == "image/jpeg" and Image.open(io.BytesIO(large)).size == (1024, 256)


def test_nothing_rides_along_in_the_file(root: Path) -> None:
    path = root / "talks.png"
    from PIL.PngImagePlugin import PngInfo

    note = PngInfo()
    note.add_text("Comment", "<script>alert(1)</script>")
    Image.new("RGB", (8, 8)).save(path, pnginfo=note)
    path.write_bytes(path.read_bytes() + b"<script>alert(2)</script>")
    content, _ = encode(PictureFiles(root).read("talks.png"), 1024)
    assert b"script" not in content


def test_where_a_runs_pictures_are(tmp_path: Path, root: Path, run: Run) -> None:
    files = find_images(run, "cat/0.png")
    assert isinstance(files, PictureFiles) and files.root == os.path.realpath(tmp_path / "photos")
    (tmp_path / "t.csv").touch()
    by_table = find_images(write_run(tmp_path / "r2", ["a.png"], tmp_path / "t.csv"), "a.png")
    assert isinstance(by_table, PictureFiles) and by_table.root == os.path.realpath(tmp_path)
    digits = write_run(tmp_path / "r3", ["train/0"], "digits")
    assert isinstance(find_images(digits, "train/0"), NoImages)
    with pytest.raises(Unreadable, match="no pictures"):
        find_images(digits, "train/0").read("train/0")
    moved = write_run(tmp_path / "r4", ["a.png"], "photos_that_moved")
    with pytest.raises(InputError, match=r"photos_that_moved: pictures .* --images"):
        find_images(moved, "a.png")
    assert isinstance(find_images(moved, "a.png", root), PictureFiles)
    with pytest.raises(InputError, match="no such folder"):
        find_images(moved, "a.png", tmp_path / "nowhere")


def test_pictures_of_a_set_in_memory_are_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ["train/0", "train/1", "train/2"], "digits")
    blue, red = Image.new("RGB", (8, 8), "blue"), Image.new("RGB", (8, 8), "red")
    RunWriter(run.path).write_thumbnails({2: shrink(blue), 0: shrink(red)})
    source = find_images(Run(run.path), "train/0")
    assert isinstance(source, StoredPictures)
    assert source.read("train/2").getpixel((4, 4)) == (0, 0, 255)
    assert source.read("train/0").getpixel((4, 4)) == (255, 0, 0)
    with pytest.raises(Unreadable, match="no picture stored"):
        source.read("train/1")


def test_rows_of_a_dataset_are_no_files_that_are_gone(tmp_path: Path, photos: Path) -> None:
    run = write_run(tmp_path / "run", ["train/0", "train/1"], photos)
    RunWriter(run.path).write_thumbnails({0: shrink(Image.new("RGB", (3, 3), "blue"))})
    with pytest.raises(Unreadable, match="no picture stored"):
        find_images(Run(run.path), "train/0").read("train/1")


def test_files_come_before_what_was_stored(tmp_path: Path, photos: Path) -> None:
    run = write_run(tmp_path / "run", ["cat/0.png", "train/1", "gone.png"], photos)
    small = shrink(Image.new("RGB", (3, 3), "blue"))
    RunWriter(run.path).write_thumbnails({0: small, 1: small})
    source = find_images(Run(run.path), "cat/0.png")
    assert isinstance(source, FirstOf)
    assert source.read("cat/0.png").size == (8, 6)  # the file itself
    assert source.read("train/1").size == (3, 3)
    with pytest.raises(Unreadable, match="file not found"):
        source.read("gone.png")


def test_a_broken_store_of_pictures_is_no_obstacle(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ["train/0"], "digits")
    (run.path / "thumbnails.parquet").write_text("torn")
    assert isinstance(find_images(Run(run.path), "train/0"), NoImages)
    RunWriter(run.path).write_thumbnails({7: b"beyond the last example"})
    assert isinstance(find_images(Run(run.path), "train/0"), NoImages)


def test_data_is_found_from_where_the_run_was_started(tmp_path: Path, photos: Path) -> None:
    run = write_run(tmp_path / "run", ["cat/0.png"], "photos")
    (run.path / "environment.json").write_text(f'{{"folder": "{tmp_path}"}}')
    assert find_images(Run(run.path), "cat/0.png").read("cat/0.png").size == (8, 6)
