from __future__ import annotations

import os
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from torch import Tensor

from oddly.data import DataOptions, LabelledData, load_data
from oddly.errors import InputError

OPTIONS = DataOptions(image_size=8)


def picture(path: Path, grey: int = 100) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (12, 10), (grey, grey, grey)).save(path)


def tree(root: Path, *paths: str) -> Path:
    for i, path in enumerate(paths):
        picture(root / path, i)
    return root


def load(root: Path, options: DataOptions = OPTIONS) -> LabelledData:
    return load_data(str(root), options)


def test_class_folders_in_natural_order(tmp_path: Path) -> None:
    root = tree(tmp_path / "pets", "10/b.png", "9/a2.png", "9/a10.png", "9/deep/er/x.JPG")
    data = load(root)
    assert data.name == "pets" and data.class_names == ["9", "10"]
    assert list(data.train.ids) == ["9/a2.png", "9/a10.png", "9/deep/er/x.JPG", "10/b.png"]
    assert data.train.labels.tolist() == [0, 0, 0, 1]
    assert isinstance(data.train.images, Tensor)
    assert data.train.images[:, 0, 0, 0].tolist() == [1, 2, 3, 0]
    assert data.image_shape == (3, 8, 8) and data.augment.pad == 1 and data.augment.flip
    assert data.true_labels is None and data.test is None and not data.notes


def test_unicode_hidden_and_other_files(tmp_path: Path) -> None:
    root = tree(tmp_path, "猫/ä b.png", "犬/1.png", ".cache/x.png", "犬/._1.png", "__MACOSX/y.png")
    (root / "犬" / "notes.txt").write_text("hello")
    (root / "犬" / "phone.HEIC").write_text("unknown to Pillow")
    data = load(root)
    assert set(data.train.ids) == {"猫/ä b.png", "犬/1.png"}
    assert data.notes == ("skipped 2 files that are not images (.heic 1, .txt 1)",)


def test_splits_are_no_classes(tmp_path: Path) -> None:
    root = tree(
        tmp_path, "train/a/1.png", "train/b/1.png", "val/a/1.png", "test/b/1.png", "test/b/2.png"
    )
    data = load(root)
    assert data.class_names == ["a", "b"]
    assert list(data.train.ids) == ["train/a/1.png", "train/b/1.png"]
    assert data.test is not None and list(data.test.ids) == ["test/b/1.png", "test/b/2.png"]
    assert data.test.labels.tolist() == [1, 1]
    assert data.notes == (
        "val is not used because there is a test split; oddly train --pool-splits uses all",
    )


def test_splits_judged_together_are_named_as_they_are(tmp_path: Path) -> None:
    root = tree(tmp_path, "Train/a/1.png", "Train/b/1.png", "dev/a/1.png", "dev/b/1.png")
    data = load(root, DataOptions(image_size=8, pool_splits=True))
    (note,) = [note for note in data.notes if note.startswith("judged together: ")]
    assert sorted(note.removeprefix("judged together: ").split(", ")) == ["Train/", "dev/"]
    assert len(data.train) == 4 and data.test is None


@pytest.mark.parametrize("name", ["val", "valid", "validation", "Validation", "VAL", "dev"])
def test_val_is_the_test_split_where_there_is_no_other(tmp_path: Path, name: str) -> None:
    root = tree(tmp_path, "Train/a/1.png", "Train/b/1.png", f"{name}/a/1.png")
    data = load(root)
    assert data.test is not None and list(data.test.ids) == [f"{name}/a/1.png"]


def test_train_alone_is_a_split_level(tmp_path: Path) -> None:
    data = load(tree(tmp_path, "train/a/1.png", "train/b/1.png"))
    assert data.class_names == ["a", "b"] and data.test is None


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    data = load(tree(tmp_path, "bus/1.png", "car/1.png", "train/1.png", "train/steam/2.png"))
    assert data.class_names == ["bus", "car", "train"] and len(data.train) == 4


def test_a_split_under_another_name_is_no_class(tmp_path: Path) -> None:
    root = tree(tmp_path, "train/a/1.png", "train/b/1.png", "holdout/a/2.png", "holdout/b/2.png")
    with pytest.raises(
        InputError, match=r": holdout, train all contain a, b; rename .* val/ or test/"
    ):
        load(root)


def test_folders_above_the_classes_are_pointed_out(tmp_path: Path) -> None:
    data = load(tree(tmp_path, "2019/a/1.png", "2019/b/1.png", "2020/a/2.png", "2020/b/2.png"))
    assert data.class_names == ["2019", "2020"]  # as it was read ever since: perhaps they are
    assert data.notes == (
        "using 2019, 2020 as classes, but they all contain a, b; if those are the classes, give one"
        " of their parent folders, or a table of path and label",
    )


def test_folders_below_the_classes_need_no_note(tmp_path: Path) -> None:
    one = tree(tmp_path / "one", "a/raw/1.png", "b/raw/1.png", "b/old/2.png")  # one shared folder
    beside = tree(
        tmp_path / "beside", "a/1.png", "a/x/1.png", "a/y/1.png", "b/x/1.png", "b/y/1.png"
    )
    assert load(one).notes == () == load(beside).notes


def test_folders_beside_the_splits(tmp_path: Path) -> None:
    root = tree(tmp_path, "train/a/1.png", "train/b/1.png", "test/a/1.png", "preview/x.png")
    (root / "annotations").mkdir()
    data = load(root)
    assert data.class_names == ["a", "b"]
    assert "left out folders next to train/: preview" in data.notes


def test_test_without_labels_is_not_used(tmp_path: Path) -> None:
    data = load(tree(tmp_path, "train/a/1.png", "train/b/1.png", "test/1.png", "test/2.png"))
    assert data.test is None
    assert "test/ has no class folders, so it is not used" in data.notes


def test_train_is_required(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="test, val but no images in train/"):
        load(tree(tmp_path, "val/a/1.png", "val/b/1.png", "test/a/1.png"))


def test_unknown_test_class(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"test/ has classes without images in train/: zebra"):
        load(tree(tmp_path, "train/a/1.png", "train/b/1.png", "test/a/1.png", "test/zebra/1.png"))


def test_decomposed_names_are_the_same_class(tmp_path: Path) -> None:
    composed, decomposed = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    root = tree(tmp_path, f"train/{composed}/1.png", "train/b/1.png", f"test/{decomposed}/1.png")
    data = load(root)
    assert data.class_names == ["b", composed]
    assert data.test is not None and data.test.labels.tolist() == [1]


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    tree(tmp_path, "a/1.png", "b/1.png")
    os.rename(os.fsencode(tmp_path / "b"), os.fsencode(tmp_path) + b"/caf\xe9")
    data = load(tmp_path)
    assert all(text.encode("utf-8") for text in [*data.class_names, *data.train.ids])
    assert len(data.train) == 2


def test_empty_and_hopeless_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no images"):
        load(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.heic").write_text("x")
    with pytest.raises(
        InputError, match=r"contains no images \(skipped 1 file that is not an image \(\.heic\)"
    ):
        load(tmp_path)
    tree(tmp_path, "1.png")
    with pytest.raises(InputError, match="has images but no class folders"):
        load(tmp_path)
    tree(tmp_path, "a/1.png")
    with pytest.raises(InputError, match=r"only one class \(a\)"):
        load(tmp_path)


def test_train_without_class_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="train has images but no class folders"):
        load(tree(tmp_path, "train/1.png", "train/2.png", "test/3.png"))


def test_one_folder_around_the_classes_is_pointed_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean .*/unzipped?"):
        load(tree(tmp_path, "unzipped/a/1.png", "unzipped/b/1.png"))


def test_loose_images_and_empty_classes_are_noted(tmp_path: Path) -> None:
    root = tree(tmp_path, "a/1.png", "b/1.png", "loose.png")
    (root / "c").mkdir()
    data = load(root)
    assert data.class_names == ["a", "b"]
    assert data.notes == (
        "left out 1 image outside class folders: loose.png",
        "left out folders without images: c",
    )


def test_links(tmp_path: Path) -> None:
    picture(tmp_path / "elsewhere" / "x.png")
    root = tree(tmp_path / "root", "a/1.png", "b/1.png")
    (root / "a" / "out.png").symlink_to(tmp_path / "elsewhere" / "x.png")
    (root / "outside").symlink_to(tmp_path / "elsewhere")
    (root / "b" / "circle").symlink_to(root)
    (root / "a" / "itself.png").symlink_to("itself.png")
    (root / "a" / "to_b").symlink_to(root / "b")
    (root / "b" / "2.png").symlink_to(root / "a" / "1.png")
    data = load(root)
    assert data.class_names == ["a", "b"]
    # b seen through a/to_b counts for a, as everything below a does
    assert set(data.train.ids) == {
        "a/1.png", "a/to_b/1.png", "a/to_b/2.png", "b/1.png", "b/2.png",
    }  # fmt: skip
    assert data.notes == (
        "ignored 5 links pointing outside the folder or in a circle: a/itself.png, a/out.png,"
        " a/to_b/circle, b/circle, outside",
    )


def test_a_root_that_is_a_link_works(tmp_path: Path) -> None:
    tree(tmp_path / "real", "a/1.png", "b/1.png")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert len(load(tmp_path / "link").train) == 2


def bad_folder(root: Path) -> Path:
    tree(root, "train/a/1.png", "train/a/2.png", "train/b/1.png", "test/b/1.png")
    (root / "train/a/2.png").write_bytes(b"")
    (root / "test/b/bad.jpg").write_bytes(b"junk")
    return root


def test_unreadable_images_are_listed(tmp_path: Path) -> None:
    expected = (
        r"^2 of 5 images cannot be read: train/a/2\.png \(empty file\),"
        r" test/b/bad\.jpg \(not an image\); use --skip-unreadable to leave them out$"
    )
    with pytest.raises(InputError, match=expected):
        load(bad_folder(tmp_path))


@pytest.mark.parametrize("limit", [2**31, 0])
def test_unreadable_images_are_left_out_when_asked(tmp_path: Path, limit: int) -> None:
    options = DataOptions(image_size=8, skip_unreadable=True, memory_limit=limit)
    data = load(bad_folder(tmp_path), options)
    assert list(data.train.ids) == ["train/a/1.png", "train/b/1.png"]
    assert data.train.labels.tolist() == [0, 1]
    assert data.test is not None and list(data.test.ids) == ["test/b/1.png"]
    assert isinstance(data.train.images, Tensor) == (limit > 0)
    assert [int(data.train.images[i][0, 0, 0]) for i in range(2)] == [0, 2]
    assert data.notes[0].endswith("(not an image); left out")
    assert data.mean == pytest.approx((1 / 255,) * 3) and data.std == pytest.approx((1 / 255,) * 3)


@pytest.mark.usefixtures("lost_is_closed")
def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    root = tree(tmp_path, "a/1.png", "b/1.png", "lost+found/x.png")
    told = r"1 folder cannot be read: lost\+found/ \(permission denied\); use --skip-unreadable"
    with pytest.raises(InputError, match=f"^{told}"):
        load(root)
    data = load(root, DataOptions(image_size=8, skip_unreadable=True))
    assert data.class_names == ["a", "b"] and data.notes[0].endswith(
        "(permission denied); left out"
    )
    assert data.closed == {"lost+found/": "permission denied"}
    with pytest.raises(InputError, match=r"lost\+found cannot be read: permission denied$"):
        load(root / "lost+found", DataOptions(skip_unreadable=True))


def test_everything_unreadable(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(b"")
    with pytest.raises(InputError, match="none of the 2 training images can be read"):
        load(tmp_path, DataOptions(skip_unreadable=True))
    (tmp_path / "b/1.png").write_text("text")
    with pytest.raises(InputError, match=r"a/1.png \(empty file\), b/1.png \(not an image\)$"):
        load(tmp_path, DataOptions())


def test_a_class_whose_images_are_all_unreadable_stays_and_is_noted(tmp_path: Path) -> None:
    root = tree(tmp_path, "a/1.png", "b/1.png", "c/1.png")
    (root / "b/1.png").write_bytes(b"")
    data = load(root, DataOptions(image_size=8, skip_unreadable=True))
    assert data.class_names == ["a", "b", "c"] and data.train.labels.tolist() == [0, 2]
    assert data.notes[-1] == "classes with no readable training image: b"


def test_progress_runs_over_both_splits(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    root = tree(tmp_path, "train/a/1.png", "train/b/1.png", "val/a/1.png")
    load(root, DataOptions(image_size=8, progress=lambda done, total: told.append((done, total))))
    assert told == [(2, 3), (3, 3)]


def test_bad_size(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="image size must be at least 1, got 0"):
        load(tree(tmp_path, "a/1.png", "b/1.png"), DataOptions(image_size=0))


def test_photos_that_are_shrunk_are_told_of(tmp_path: Path) -> None:
    for name in ("a/1.png", "b/1.png", "b/2.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (400, 300)).save(tmp_path / name)
    (tmp_path / "a/2.png").write_bytes(b"")
    skip = DataOptions(skip_unreadable=True)
    told = "resizing images of 300 px to 32 px (--image-size); for a few thousand photos, oddly"
    assert load(tmp_path, skip).notes[0] == f"{told} clean works better"
    assert load(tmp_path, replace(skip, from_scratch=False)).notes[0] == told.partition(";")[0]
    assert load(tmp_path, skip).unread == ["a/2.png"]
    assert not any("300 px" in note for note in load(tmp_path, replace(skip, image_size=151)).notes)
    assert not any("300 px" in note for note in load(tmp_path, replace(skip, decode=False)).notes)
