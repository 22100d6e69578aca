from __future__ import annotations

import csv
from pathlib import Path

import pytest

from oddly.records import count_unread, read_list, read_twins


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_a_list_is_read_however_a_spreadsheet_saved_it(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "unreadable.csv"
    path.write_bytes("id,reason\r\né/1.png,torn\r\né/,closed\r\n".encode(encoding))
    assert [row["reason"] for row in read_list(path)] == ["torn", "closed"]
    assert count_unread(tmp_path) == (1, 1)
    if encoding != "latin-1":
        assert read_list(path)[0]["id"] == "é/1.png"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_list_is_read_whatever_stands_between_its_columns(tmp_path: Path, delimiter: str) -> None:
    rows = [["id", "reason"], ["a,b/1.png", "torn, or cut; short"], ["a/", "closed"]]
    _save(tmp_path / "unreadable.csv", rows, delimiter)
    assert count_unread(tmp_path) == (1, 1)
    rows = [["group", "id", "given_name", "conflicting", "same"]]
    rows += [["1", "a,b", "cat", "WAHR", "same pixels"], ["1", "b;c", "dog", "WAHR", "same pixels"]]
    rows += [["2", id, "cat", "FALSCH", "same pixels"] for id in ("c", "d")]
    _save(tmp_path / "duplicates.csv", rows, delimiter)
    assert {id: twin.group for id, twin in read_twins(tmp_path).items()} == {"a,b": 1, "b;c": 1}


def _save(path: Path, rows: list[list[str]], delimiter: str) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"id,reason\n", b'"' * 200_000])
def test_what_is_no_list_is_empty(tmp_path: Path, content: bytes) -> None:
    assert count_unread(tmp_path) == (0, 0)
    (tmp_path / "unreadable.csv").write_bytes(content)
    assert count_unread(tmp_path) == (0, 0)
