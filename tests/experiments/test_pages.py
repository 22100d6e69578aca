"""Tables as Markdown, and the page that is kept up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oddly.errors import InputError
from oddly.experiments import EXPERIMENTS
from oddly.experiments.base import Experiment, Filled, PaperNumber
from oddly.experiments.pages import BLOCK, arrange, markdown_table, refresh
from oddly.experiments.results import Store

PAGE = Path(__file__).parents[2] / "docs" / "reproduce.md"
TABLE = Experiment("t", "T", "free", cells=lambda size, seeds: [], digits=1)


def test_the_page_says_what_is_stored(tmp_path: Path) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text())
    refresh(copy, EXPERIMENTS, Store())
    told = "write it anew: oddly reproduce --page docs/reproduce.md"
    assert copy.read_text() == PAGE.read_text(), told


def test_the_page_has_every_table_and_figure() -> None:
    assert {match[1] for match in BLOCK.finditer(PAGE.read_text())} == set(EXPERIMENTS)
    for name in re.findall(r"oddly reproduce (\w+)", PAGE.read_text()):
        assert name in EXPERIMENTS


def test_a_table_by_hand() -> None:
    filled = [
        Filled("ERM", "C 20 %", PaperNumber(69.6, 0.1), (70.0, 71.0)),
        Filled("ERM", "C 0 %", None, ()),
        Filled("ODD", "C 20 %", PaperNumber(77.2), (77.0,)),
    ]
    assert markdown_table(TABLE, filled).splitlines() == [
        "| ours / paper | C 0 % | C 20 % |",
        "|---|---|---|",
        "| ERM | missing / – | 70.5±0.7 n=2 / 69.6±0.1 |",
        "| ODD |  | 77.0 n=1 / 77.2 |",
    ]
    assert arrange([Filled("a", c, None, ()) for c in ("p = 10", "p = 2", "b")])[1] == [
        *("b", "p = 2", "p = 10")
    ]


def test_nothing_to_show_is_one_line() -> None:
    assert markdown_table(TABLE, [Filled("a", "b", None, ())] * 4).endswith(
        "4 numbers are missing."
    )


def test_an_unknown_block_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- table99 -->\n<!-- end -->\n")
    with pytest.raises(InputError, match="unknown table or figure 'table99'"):
        refresh(page, EXPERIMENTS, Store())
    page.write_text("<!-- table3 fast -->\n<!-- end -->\n")
    with pytest.raises(InputError, match="table3 has no size 'fast'"):
        refresh(page, EXPERIMENTS, Store())
    page.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        refresh(page, EXPERIMENTS, Store())
    with pytest.raises(InputError, match="No such file"):
        refresh(tmp_path / "none.md", EXPERIMENTS, Store())
