from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from oddly.errors import InputError
from oddly.records import write_csv
from oddly.text_table import (
    LABEL_COLUMNS,
    PATH_COLUMNS,
    about_choice,
    read_text_columns,
    refuse_empty,
    spell,
)

WANTED = {"id": ("id", "path"), "label": ("label", "class")}


def test_text_stays_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Class,PATH,more\n007, a.png,1\nNA,b.png ,2\n,c.png,3\n")
    columns = read_text_columns(tmp_path / "t.csv", WANTED)
    assert columns == {"id": [" a.png", "b.png ", "c.png"], "label": ["007", "NA", ""]}
    with pytest.raises(InputError, match="1 row without a label, first row 3"):
        refuse_empty(tmp_path / "t.csv", "label", columns["label"])


KINDS = [pa.string(), pa.large_string()]
if int(pa.__version__.split(".")[0]) >= 21:  # older ones can read it, but not write it
    KINDS.append(pa.string_view())


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_kind_of_text(tmp_path: Path, kind: pa.DataType) -> None:
    table = pa.table({"id": pa.array(["a", None]).cast(kind), "label": ["x", "y"]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    assert read_text_columns(tmp_path / "t.parquet", WANTED)["id"] == ["a", ""]


def test_integers_that_met_a_missing_value(tmp_path: Path) -> None:
    pd.DataFrame({"id": ["a", "b"], "label": [3.0, None]}).to_parquet(tmp_path / "t.parquet")
    assert read_text_columns(tmp_path / "t.parquet", WANTED)["label"] == ["3", ""]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_bytes_are_no_text(tmp_path: Path, kind: pa.DataType) -> None:
    table = pa.table({"id": pa.array([b"a"], kind), "label": ["x"]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="column id has type (large_)?binary, expected text"):
        read_text_columns(tmp_path / "t.parquet", WANTED)


def test_names_are_spelt_as_the_data_know_them() -> None:
    names = ["a/1.png", " a/1.png ", "./a/1.png", ".\\a\\1.png", " b/1.png", "c\\d.png", " new"]
    known = {"a/1.png", " b/1.png", "c\\d.png"}
    assert spell(names, known) == [*["a/1.png"] * 4, " b/1.png", "c\\d.png", " new"]


def test_names_come_back_as_they_were_written(tmp_path: Path) -> None:
    """Also those that a spreadsheet takes for formulas, and line ends of every kind."""
    odd = ["=HYPERLINK(1)", "+1", "-1", "@a", "'=1", 'a"b', "a;b", "a,b", " a ", "NA", "\tx", "é"]
    odd += ["a\nb", "a\rb", "a\r\nb"]
    many = [f"{name}/{number:09d}\n" for number in range(10_000) for name in odd]  # several blocks
    for names in (odd, many):
        write_csv(tmp_path / "t.csv", ("id", "label"), zip(names, names, strict=True))
        assert read_text_columns(tmp_path / "t.csv", WANTED) == {"id": names, "label": names}


def test_what_stands_in_quotes_delimits_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('id,label,"notes; long; longer; longest"\na,x,"b, c"\n')
    assert read_text_columns(tmp_path / "t.csv", WANTED) == {"id": ["a"], "label": ["x"]}


def test_columns_are_known_however_they_are_spelt(tmp_path: Path) -> None:
    wanted = {"path": PATH_COLUMNS, "label": LABEL_COLUMNS}
    for header in ("Image Path,Label", "image-path, LABEL ", "IMAGE_PATH,Class"):
        (tmp_path / "t.csv").write_text(f"{header}\na.png,x\n")
        columns = read_text_columns(tmp_path / "t.csv", wanted)
        assert columns == {"path": ["a.png"], "label": ["x"]}
        assert about_choice(tmp_path / "t.csv", wanted) == []


def test_which_of_several_columns_is_taken_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,class,Label\na,x,y\n")
    assert read_text_columns(tmp_path / "t.csv", WANTED)["label"] == ["y"]
    told = ["t.csv has the columns class, Label; using Label"]
    assert about_choice(tmp_path / "t.csv", WANTED) == told
    pa.parquet.write_table(pa.table({"path": ["a"], "id": ["b"]}), tmp_path / "t.parquet")
    told = ["t.parquet has the columns path, id; using id"]
    assert about_choice(tmp_path / "t.parquet", WANTED) == told


def test_a_first_line_of_values_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "0.png").touch()
    (tmp_path / "t.csv").write_text("0.png,cat\n1.png,dog\n")
    with pytest.raises(
        InputError, match="no column id .*; the first line must contain the column names"
    ):
        read_text_columns(tmp_path / "t.csv", WANTED)
    (tmp_path / "t.csv").write_text("0.gif,cat\n1.png,dog\n")
    with pytest.raises(InputError, match="its columns are 0.gif, cat"):
        read_text_columns(tmp_path / "t.csv", WANTED)


def test_a_row_of_another_length_is_named(tmp_path: Path) -> None:
    rows = "".join(f"{i},x\n" for i in range(200_000))  # several blocks
    (tmp_path / "t.csv").write_text(f"id,label\n{rows}a,b,c\n{rows}")
    with pytest.raises(InputError, match=r"t.csv: row 200,001 has 3 columns, expected 2: a,b,c"):
        read_text_columns(tmp_path / "t.csv", WANTED)
    (tmp_path / "t.csv").write_text("id,label\na,b\nc\n")
    with pytest.raises(InputError, match=r"t.csv: row 2 has 1 column, expected 2: c"):
        read_text_columns(tmp_path / "t.csv", WANTED)
