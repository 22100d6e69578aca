from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image
from torch import Tensor

from oddly.data import DataOptions, LabelledData, load_data
from oddly.errors import InputError

OPTIONS = DataOptions(image_size=4)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Six pictures, each of its own grey."""
    (tmp_path / "img").mkdir()
    for i in range(6):
        Image.new("L", (6, 6), i).save(tmp_path / "img" / f"{i}.png")
    return tmp_path


def load(path: Path, options: DataOptions = OPTIONS) -> LabelledData:
    return load_data(str(path), options)


def write(root: Path, text: str, name: str = "t.csv") -> Path:
    (root / name).write_bytes(text.encode())
    return root / name


def test_csv(root: Path) -> None:
    data = load(write(root, "path,label\nimg/3.png,dog\nimg/1.png,cat\nimg/0.png,dog\n"))
    assert data.name == "t" and data.class_names == ["cat", "dog"]
    assert list(data.train.ids) == ["img/3.png", "img/1.png", "img/0.png"]
    assert data.train.labels.tolist() == [1, 0, 1] and data.test is None
    assert isinstance(data.train.images, Tensor)
    assert data.train.images[:, 0, 0, 0].tolist() == [3, 1, 0]
    assert data.true_labels is None and data.notes == ()


@pytest.mark.parametrize(
    "text",
    [
        "\ufefffilename;category\nimg/0.png;a\nimg/1.png;b\n",  # from a spreadsheet
        "Label\tImage_Path\r\na\timg/0.png\r\nb\timg/1.png\r\n",
        'extra,"file", class \n1,"img/0.png", a \n2,img/1.png,b',
        "target,file_name\na,./img/0.png\nb,img\\1.png\n",
    ],
)
def test_ways_to_write_it(root: Path, text: str) -> None:
    data = load(write(root, text))
    assert list(data.train.ids) == ["img/0.png", "img/1.png"]
    assert data.class_names == ["a", "b"]


def test_classes_may_look_like_numbers_or_nothing(root: Path) -> None:
    text = "path,label\nimg/0.png,007\nimg/1.png,NA\nimg/2.png,7\nimg/3.png,null\nimg/4.png,10\n"
    assert load(write(root, text)).class_names == ["007", "7", "10", "NA", "null"]


def test_splits(root: Path) -> None:
    rows = [("0", "a", "train"), ("1", "b", "Train"), ("2", "a", "val"), ("3", "b", "test")]
    text = "path,label,split\n" + "".join(f"img/{i}.png,{k},{s}\n" for i, k, s in rows)
    data = load(write(root, text))
    assert list(data.train.ids) == ["img/0.png", "img/1.png"]
    assert data.test is not None and list(data.test.ids) == ["img/3.png"]
    assert [note.split(";")[0] for note in data.notes] == [
        "val is not used because there is a test split"
    ]
    data = load(write(root, text.replace(",test", ",valid")))
    assert data.test is not None and data.test.labels.tolist() == [0, 1] and not data.notes


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series([2, 10, 2]),
        pd.Series([2.0, 10.0, 2.0]),
        pd.Series(["2", "10", "2"]).astype("category"),
        pd.Series([2, 10, 2]).astype("category"),
    ],
)
def test_parquet_labels(root: Path, labels: pd.Series) -> None:  # type: ignore[type-arg]
    frame = pd.DataFrame({"label": labels, "path": [f"img/{i}.png" for i in range(3)]})
    frame.to_parquet(root / "t.parquet")
    data = load(root / "t.parquet")
    assert data.class_names == ["2", "10"] and data.train.labels.tolist() == [0, 1, 0]
    assert list(data.train.ids) == ["img/0.png", "img/1.png", "img/2.png"]


def test_absolute_paths_and_paths_above(root: Path) -> None:
    (root / "tables").mkdir()
    rows = f"path,label\n{root}/img/0.png,a\n../img/1.png,b\n"
    data = load(write(root / "tables", rows))
    assert list(data.train.ids) == [f"{root}/img/0.png", "../img/1.png"]
    data = load(write(root, f"path,label\n{root}/img/0.png,a\nimg/1.png,b\n"))
    assert list(data.train.ids) == ["img/0.png", "img/1.png"]


def test_a_file_listed_twice_has_two_ids(root: Path) -> None:
    """Under two labels one is wrong, and that is told; else it may be a weight."""
    data = load(write(root, "path,label\nimg/0.png,a\nimg/0.png,b\nimg/0.png,a\nimg/1.png,b\n"))
    assert list(data.train.ids) == ["img/0.png", "img/0.png#2", "img/0.png#3", "img/1.png"]
    assert data.notes == (
        "2 rows repeat a file; repeated ids end in #2, #3, …; 1 file with different"
        " labels, at most one of them right: img/0.png",
    )
    data = load(write(root, "path,label\nimg/0.png,a\nimg/0.png,a\nimg/1.png,b\n"))
    assert data.notes == ("1 row repeats a file; repeated ids end in #2, #3, …",)


@pytest.mark.parametrize("skip", [False, True])
def test_a_table_none_of_whose_files_is_there_says_where_they_were_sought(
    root: Path, skip: bool
) -> None:
    (root / "tables").mkdir()
    file = write(root / "tables", "path,label\nimg/0.png,a\nimg/1.png,b\n")
    with pytest.raises(InputError) as caught:
        load(file, DataOptions(image_size=4, skip_unreadable=skip))
    assert str(caught.value) == (
        f"none of the 2 files named in {file} exists: img/0.png, img/1.png; a path in a table is"
        f" relative to the table's own folder, here {root.resolve() / 'tables'}"
    )


def test_missing_files(root: Path) -> None:
    rows = "path,label\nimg/0.png,a\nimg/1.png,b\n" + "".join(f"no{i}.png,a\n" for i in range(12))
    file = write(root, rows)
    with pytest.raises(InputError) as caught:
        load(file)
    message = str(caught.value)
    assert message.startswith("12 of 14 files named in ") and "\n" not in message
    assert "no0.png, no1.png" in message and "no9.png, …" in message and "no10" not in message
    data = load(file, DataOptions(image_size=4, skip_unreadable=True))
    assert list(data.train.ids) == ["img/0.png", "img/1.png"]
    assert data.notes[0].startswith("12 of 14 files") and data.notes[0].endswith("left out")


def test_unreadable_files(root: Path) -> None:
    (root / "img/1.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"1 of 3 images cannot be read: img/1\.png \(empty"):
        load(write(root, "path,label\nimg/0.png,a\nimg/1.png,b\nimg/2.png,b\n"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("path,label\n", "has no rows"),
        (
            "path,lable\nimg/0.png,a\n",
            r"no column label \(or class, target.*its columns are path, lable",
        ),
        ("name,label\nimg/0.png,a\n", r"no column path \(or file, filename"),
        ("path,label\nimg/0.png,a\nimg/1.png\n", "row 2 has 1 column, expected 2: img"),
        ("path,label\nimg/0.png,a\nimg/1.png,\n", "1 row without a label, first row 2"),
        ("path,label\n,a\nimg/1.png,b\n", "1 row without a path, first row 1"),
        ("path,label\nimg/0.png,a\nimg/1.png,a\n", r"only one class \(a\)"),
        ("path,label,split\nimg/0.png,a,trian\n", "unknown split 'trian' in row 1; use train"),
        ("path,label,split\nimg/0.png,a,test\n", "no rows to train on"),
        (
            "path,label,split\nimg/0.png,a,train\nimg/1.png,b,train\nimg/2.png,c,test\n",
            "classes that no training row has: c",
        ),
    ],
)
def test_bad_tables(root: Path, text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        load(write(root, text))
    assert "\n" not in str(caught.value)


def test_text_that_is_none(root: Path) -> None:
    (root / "t.csv").write_bytes("path,label\nimg/0.png,é\n".encode("utf-16"))
    with pytest.raises(InputError, match="not UTF-8"):
        load(root / "t.csv")
    (root / "t.csv").write_bytes(b"path,label\nimg/0.png,caf\xe9\nimg/1.png,b\n")
    with pytest.raises(InputError, match="cannot (be )?read"):
        load(root / "t.csv")


def test_broken_parquet(root: Path) -> None:
    file = root / "t.parquet"
    pd.DataFrame({"path": ["img/0.png"] * 9, "label": ["a", "b", "c"] * 3}).to_parquet(file)
    whole = file.read_bytes()
    for content in (b"", whole[: len(whole) // 2], whole[4:], b"path,label\n"):
        file.write_bytes(content)
        with pytest.raises(InputError, match=r"cannot read .*t\.parquet") as caught:
            load(file)
        assert "\n" not in str(caught.value)


def test_embedded_images_are_read_and_are_no_labels(root: Path) -> None:
    content = [(root / "img" / f"{i}.png").read_bytes() for i in range(2)]
    image = pa.array([{"bytes": each, "path": "0.png"} for each in content])
    pa.parquet.write_table(pa.table({"image": image, "label": [1, 2]}), root / "t.parquet")
    assert list(load(root / "t.parquet").train.ids) == ["train/0", "train/1"]
    pa.parquet.write_table(pa.table({"path": ["a", "b"], "label": image}), root / "t.parquet")
    with pytest.raises(
        InputError, match="column label has type struct<.*, expected text or integers"
    ):
        load(root / "t.parquet")
    pa.parquet.write_table(pa.table({"path": ["img/0.png"], "label": [0.5]}), root / "t.parquet")
    with pytest.raises(InputError, match="column label has type double"):
        load(root / "t.parquet")


def test_a_table_of_two_labels_tells_which_it_takes(root: Path) -> None:
    data = load(write(root, "path,class,label\nimg/0.png,x,a\nimg/1.png,y,b\n"))
    assert data.class_names == ["a", "b"]
    assert data.notes == ("t.csv has the columns class, label; using label",)
