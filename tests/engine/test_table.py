"""Tables per example: made where they fit, refused in one line where they do not."""

from __future__ import annotations

import math

import pytest
import torch

from oddly.engine import table
from oddly.engine.table import TableMaker, format_bytes, free_memory
from oddly.errors import InputError

CPU = torch.device("cpu")


def test_a_table_that_fits() -> None:
    tables = TableMaker("elr", 1000, CPU)
    assert tables.make(7).shape == (1000, 7) and not tables.notes
    tables.make(1000)
    assert tables.notes == ["elr stores 1,000 x 1,000 numbers: 4 MB"]


def test_one_that_does_not() -> None:
    with pytest.raises(InputError, match=r"elr stores 1,000,000,000 x 1,000 .*: 4 TB, but only"):
        TableMaker("elr", 10**9, CPU).make(1000)


@pytest.mark.parametrize("error", [AttributeError, ValueError, OSError])
def test_where_the_system_does_not_say_everything_fits(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS knows no SC_AVPHYS_PAGES, Windows no sysconf; neither has /proc."""

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr("builtins.open", lambda *_: refuse() if error is OSError else no_file())
    monkeypatch.setattr(table.os, "sysconf", refuse)
    assert free_memory(CPU) == math.inf
    assert TableMaker("elr", 10, CPU).make(7).shape == (10, 7)


def no_file() -> None:
    raise FileNotFoundError


def test_bytes() -> None:
    assert 2**20 < free_memory(CPU) < 2**50
    sizes = [0, 999, 1000, 4_200_000, 4 * 10**9, 5 * 10**15]
    assert [format_bytes(size) for size in sizes] == [
        *("0 B", "999 B", "1 kB", "4.2 MB", "4 GB", "5e+03 TB")
    ]
