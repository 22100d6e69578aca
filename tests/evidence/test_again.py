"""Rows are made once, stored at once, and shown beside the stored ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evidence.again import RESULTS, Cells, Table, compare, main, make, options
from oddly.errors import InputError

TABLE = Table("held_out_mnist.json", "runs")
NAME = {"labels": "clean", "seed": 0}


def given(tmp_path: Path, *words: str) -> Any:
    return options(None).parse_args(["--out", str(tmp_path), *words])


def test_a_row_is_made_once_and_written_with_what_the_file_says_of_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = json.loads((RESULTS / TABLE.file).read_text())
    (row,) = [row for row in stored["runs"] if row["labels"] == "clean"]
    rest = {key: row[key] for key in row if key not in NAME}
    calls = []

    def work() -> dict[str, Any]:
        calls.append(1)
        return rest

    cells: Cells = [(NAME, work), ({"labels": "uniform5", "seed": 0}, dict)]
    make(TABLE, cells, given(tmp_path, "--only", "clean"))
    make(TABLE, cells, given(tmp_path, "--only", "clean"))
    assert calls == [1]
    said = capsys.readouterr().out
    assert "clean, 0: as stored" in said and "clean, 0: made before" in said
    made = json.loads((tmp_path / TABLE.file).read_text())
    assert made["runs"] == [row] and made["what"] == stored["what"]
    assert "torch" in made["environment"]["packages"] and "hardware" not in made


def test_a_list_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(TABLE, [(NAME, dict)], given(tmp_path, "--list"))
    assert capsys.readouterr().out == "clean, 0\n"
    assert not list(tmp_path.iterdir())


def test_what_differs_is_named_to_the_stored_digits() -> None:
    stored = {"f1": 0.87, "noise": {"low": 0.1}, "seed": 1, "rates": [0.5, 0.25]}
    alike = {"f1": 0.8738, "noise": {"low": 0.14}, "seed": 1, "rates": [0.52, 0.254]}
    assert compare(stored, alike) == "as stored"
    other = compare(stored, alike | {"f1": 0.8751, "rates": [0.5]})
    assert other == "f1 0.87 stored, 0.8751 now; rates.1 0.25 stored, nothing now"


def test_a_mistake_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row is named like 'nothing'"):
        make(TABLE, [(NAME, dict)], given(tmp_path, "--only", "nothing"))

    def fails() -> None:
        raise InputError("no such folder")

    with pytest.raises(SystemExit, match="error: no such folder"):
        main(fails)
