from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

from oddly.data import DataOptions, LabelledData, load_data
from oddly.data.huggingface import is_huggingface
from oddly.data.source import ImageSource
from oddly.errors import InputError

OPTIONS = DataOptions(image_size=4)
LISTED = DataOptions(image_size=4, decode=False)


def png(grey: int) -> bytes:
    content = io.BytesIO()
    Image.new("L", (6, 6), grey).save(content, "PNG")
    return content.getvalue()


def load(folder: Path, options: DataOptions = OPTIONS) -> LabelledData:
    return load_data(str(folder), options)


def write_parquet(path: Path, greys: list[int], labels: list[object], image: str = "image") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"bytes": png(grey), "path": f"{grey}.png"} for grey in greys]
    pa.parquet.write_table(pa.table({image: rows, "label": labels}), path)


def test_parquet_files_as_on_the_hub(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data/train-00000-of-00002.parquet", [1, 2], ["cat", "dog"])
    write_parquet(tmp_path / "data/train-00001-of-00002.parquet", [3], ["cat"])
    write_parquet(tmp_path / "data/test-00000-of-00001.parquet", [4], ["dog"])
    data = load(tmp_path)
    assert data.class_names == ["cat", "dog"] and list(data.train.ids) == [
        *("train/0", "train/1", "train/2")
    ]
    assert data.train.labels.tolist() == [0, 1, 0]
    assert data.train.images[:, 0, 0, 0].tolist() == [1, 2, 3]  # type: ignore[index]
    assert data.test is not None and list(data.test.ids) == ["test/0"]
    pooled = load(tmp_path, DataOptions(image_size=4, pool_splits=True))
    assert len(pooled.train) == 4 and pooled.test is None and "together" in pooled.notes[0]


def test_splits_that_are_not_used_are_told_of(tmp_path: Path) -> None:
    for split in ("train", "test", "validation"):
        write_parquet(tmp_path / f"data/{split}-0.parquet", [1, 2], ["cat", "dog"])
    told = "splits not used: validation; oddly train --pool-splits uses all"
    assert load(tmp_path).notes == (told,)
    write_parquet(tmp_path / "data/validation-0.parquet", [1, 2], ["cat", None])  # no matter
    assert load(tmp_path).notes == (told,)
    with pytest.raises(InputError, match="1 row without a label, first row 2"):
        load(tmp_path, DataOptions(image_size=4, pool_splits=True))
    (tmp_path / "data/test-0.parquet").unlink()
    write_parquet(tmp_path / "data/validation-0.parquet", [1], ["cat"])  # the test set, then
    assert load(tmp_path).notes == () and load(tmp_path).test is not None


def test_plain_bytes_and_a_column_found_by_its_type(tmp_path: Path) -> None:
    table = pa.table({"content": [png(5), png(6)], "target": [1, 0]})
    pa.parquet.write_table(table, tmp_path / "all.parquet")
    data = load(tmp_path)
    assert data.class_names == ["0", "1"] and data.train.labels.tolist() == [1, 0]


def test_what_save_to_disk_writes(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    kinds = datasets.Features(
        {"img": datasets.Image(), "label": datasets.ClassLabel(names=["dog", "cat"])}
    )
    rows = {"img": [{"bytes": png(i), "path": None} for i in range(6)], "label": [0, 1] * 3}
    made = datasets.Dataset.from_dict(rows, features=kinds)
    made.save_to_disk(str(tmp_path / "plain"))
    data = load(tmp_path / "plain")
    assert data.class_names == ["dog", "cat"] and data.train.labels.tolist() == [0, 1] * 3
    assert data.train.images[:, 0, 0, 0].tolist() == list(range(6))  # type: ignore[index]
    split = datasets.DatasetDict({"train": made.select([5, 2]), "validation": made.select([0])})
    split.save_to_disk(str(tmp_path / "split"))
    data = load(tmp_path / "split")
    assert data.train.images[:, 0, 0, 0].tolist() == [5, 2]  # type: ignore[index]
    assert data.test is not None and list(data.test.ids) == ["validation/0"]


def test_class_names_out_of_a_parquet_files_metadata(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    kinds = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["dog", "cat"])}
    )
    rows = {"image": [{"bytes": png(i), "path": None} for i in range(2)], "label": [1, 0]}
    datasets.Dataset.from_dict(rows, features=kinds).to_parquet(str(tmp_path / "train.parquet"))
    assert load(tmp_path).class_names == ["dog", "cat"]


def test_bad_rows_and_files_are_told_in_one_line(tmp_path: Path) -> None:
    write_parquet(tmp_path / "one/train.parquet", [1, 2], ["cat", "cat"])
    write_parquet(tmp_path / "empty/train.parquet", [1, 2], ["cat", None])
    pa.parquet.write_table(pa.table({"text": ["a"], "label": ["x"]}), tmp_path / "t.parquet")
    (tmp_path / "none").mkdir()
    (tmp_path / "t.parquet").rename(tmp_path / "none" / "t.parquet")
    write_parquet(tmp_path / "cut/train.parquet", [1, 2], ["cat", "dog"])
    whole = (tmp_path / "cut/train.parquet").read_bytes()
    (tmp_path / "cut/train.parquet").write_bytes(whole[: len(whole) // 2])
    write_parquet(tmp_path / "broken/train.parquet", [1, 2], ["cat", "dog"])
    table = pa.table({"image": [{"bytes": b"junk", "path": None}] * 2, "label": ["a", "b"]})
    pa.parquet.write_table(table, tmp_path / "broken/train.parquet")
    for name, words in (
        ("one", "only one class"),
        ("empty", "1 row without a label, first row 2"),
        ("none", "no column image; its columns are text, label"),
        ("cut", "cannot be read"),
        ("broken", r"none of the 2 training images can be read: not an image \(train/0, train/1\)"),
    ):
        with pytest.raises(InputError, match=words) as told:
            load(tmp_path / name)
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("labels", [[[0], [1, 2]], [{"a": 1}, {"a": 2}], [b"0", b"1"]])
def test_labels_that_are_not_one_class_each_are_refused(
    tmp_path: Path, labels: list[object]
) -> None:
    """As of a set with several labels for each image: `[1, 2]` would be called a class."""
    write_parquet(tmp_path / "all.parquet", [1, 2], labels)
    with pytest.raises(InputError, match="column label is of type .*, not one class for each"):
        load(tmp_path)


def test_integers_that_met_a_missing_value(tmp_path: Path) -> None:
    write_parquet(tmp_path / "train.parquet", [1, 2], [0.0, 1.0])
    write_parquet(tmp_path / "test.parquet", [1, 2], [float("nan"), None])
    assert load(tmp_path).class_names == ["0", "1"]
    assert load(tmp_path).notes == ("left out splits without labels: test",)
    write_parquet(tmp_path / "train.parquet", [1, 2], [0.5, 1.0])
    assert load(tmp_path).class_names == ["0.5", "1.0"]


def test_no_rows(tmp_path: Path) -> None:
    write_parquet(tmp_path / "all.parquet", [], [])
    with pytest.raises(InputError, match="has no rows"):
        load(tmp_path)


def test_a_set_written_anew_in_another_order_has_other_stamps(tmp_path: Path) -> None:
    write_parquet(tmp_path / "all.parquet", [1, 2], ["cat", "dog"])
    first = load(tmp_path, LISTED).train.images
    write_parquet(tmp_path / "all.parquet", [2, 1], ["dog", "cat"])
    second = load(tmp_path, LISTED).train.images
    assert isinstance(first, ImageSource) and isinstance(second, ImageSource)
    assert first.name(0) == second.name(0) and first.stamp(0) != second.stamp(0)
    assert first.stamp(0) == second.stamp(1)


def test_images_that_are_files_are_stamped_by_the_file(tmp_path: Path) -> None:
    (tmp_path / "1.png").write_bytes(png(1))
    rows = [{"bytes": None, "path": "1.png"}, {"bytes": None, "path": None}]
    pa.parquet.write_table(pa.table({"image": rows, "label": ["a", "b"]}), tmp_path / "all.parquet")
    images = load(tmp_path, LISTED).train.images
    assert isinstance(images, ImageSource) and images.stamp(1) == "none"
    before = images.stamp(0)
    (tmp_path / "1.png").write_bytes(png(200) + b"longer")
    assert images.stamp(0) != before


@pytest.mark.parametrize("pool", [False, True])
def test_a_test_split_without_labels_is_left_out(tmp_path: Path, pool: bool) -> None:
    write_parquet(tmp_path / "train.parquet", [1, 2], ["cat", "dog"])
    pa.parquet.write_table(pa.table({"image": [png(5)]}), tmp_path / "test.parquet")
    write_parquet(tmp_path / "validation.parquet", [3, 4], ["", ""])
    data = load(tmp_path, DataOptions(image_size=4, pool_splits=pool))
    assert data.test is None and len(data.train) == 2
    assert data.notes == ("left out splits without labels: test, validation",)


def test_a_table_of_labels_among_class_folders_is_no_dataset(tmp_path: Path) -> None:
    for name in ("cat/1.png", "dog/1.png"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(png(1))
    table = pa.table({"id": ["cat/1.png"], "label": ["dog"]})
    pa.parquet.write_table(table, tmp_path / "labels.parquet")
    data = load(tmp_path)
    assert data.class_names == ["cat", "dog"] and len(data.train) == 2
    write_parquet(tmp_path / "train.parquet", [1, 2], ["a", "b"])
    assert is_huggingface(tmp_path)


def test_without_the_package_the_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "dataset_info.json").write_text("{}")
    program = (
        "import sys; sys.modules['datasets'] = None\n"
        "from oddly.data import DataOptions, load_data\n"
        f"load_data({str(tmp_path)!r}, DataOptions())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert 'pip install "oddly[datasets]"' in done.stderr


def test_one_parquet_file_of_images_is_read_as_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "train-00000-of-00001.parquet"
    write_parquet(file, [1, 2], ["cat", "dog"])
    data = load(file)
    assert data.name == file.stem and list(data.train.ids) == ["train/0", "train/1"]
    assert data.train.images[:, 0, 0, 0].tolist() == [1, 2]  # type: ignore[index]
    named = pa.table({"path": ["a.png", "b.png"], "label": ["a", "b"], "code": [b"1", b"2"]})
    pa.parquet.write_table(named, tmp_path / "table.parquet")
    assert not is_huggingface(tmp_path / "table.parquet")  # of paths, with something else beside
    with pytest.raises(InputError, match="none of the 2 files named in"):
        load(tmp_path / "table.parquet")


def test_paths_without_bytes_say_what_to_do(tmp_path: Path) -> None:
    rows = [{"bytes": None, "path": f"/nowhere/{i}.png"} for i in range(4)]
    pa.parquet.write_table(
        pa.table({"image": rows, "label": ["a", "b"] * 2}), tmp_path / "train.parquet"
    )
    with pytest.raises(InputError, match=r"; embed the images \(train/0, train/1, train/2, …\)$"):
        load(tmp_path)
