from __future__ import annotations

import time
from pathlib import Path

import pytest

from oddly.records import group_twins, read_twins

HEADER = "group,id,given_name,conflicting,same\n"
ROWS = "7,a,cat,true,same pixels\n7,b,dog,true,same pixels\n7,c,dog,true,same pixels\n"
SAME = "8,d,dog,false,same pixels\n8,e,dog,false,same pixels\n"


def test_copies_name_each_other(tmp_path: Path) -> None:
    (tmp_path / "duplicates.csv").write_text(HEADER + ROWS + SAME)
    twins = read_twins(tmp_path)
    assert {
        id: twin.words.removeprefix("Same picture with another label: ")
        for id, twin in twins.items()
    } == {
        "a": "dog (b) and 1 more",
        "b": "cat (a)",
        "c": "cat (a)",
    }
    assert group_twins(tmp_path, ["x", "c", "d", "a"]).tolist() == [0, 7, 0, 7]


def test_a_list_that_a_spreadsheet_has_saved(tmp_path: Path) -> None:
    text = (HEADER + ROWS).replace("true", "TRUE").replace("\n", "\r\n")
    (tmp_path / "duplicates.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert sorted(read_twins(tmp_path)) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"x\n1\n", b"\xff\xfe", HEADER.encode() + b"one,a,cat,true,\n"),
        *(HEADER.encode() + b"7,a,cat,true,same\n", HEADER.encode() + b"7,a,cat\n7\n"),
    ],
)
def test_a_damaged_list_names_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "duplicates.csv").write_bytes(content)
    assert read_twins(tmp_path) == {}
    assert group_twins(tmp_path, ["a", "b"]).tolist() == [0, 0]


def test_a_picture_that_occurs_often_takes_no_longer_for_each_copy(tmp_path: Path) -> None:
    rows = [f"1,{i},{i % 10},true,same pixels\n" for i in range(20_000)]  # "image not found"
    (tmp_path / "duplicates.csv").write_text(HEADER + "".join(rows))
    started = time.process_time()
    twins = read_twins(tmp_path)
    assert time.process_time() - started < 2  # quadratic: 14
    assert twins["0"].words == "Same picture with another label: 1 (1) and 17,999 more"
    assert twins["19999"].words == "Same picture with another label: 0 (0) and 17,999 more"


def test_no_list(tmp_path: Path) -> None:
    assert read_twins(tmp_path) == {}
