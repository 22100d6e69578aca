"""The page on paper, and cards whose suggestion is what was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from oddly.records import Run
from oddly.report import write_report
from tests.report.test_browser import run

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["run"]  # a fixture


def test_on_paper_there_are_pictures_without_scrolling(
    run: Run, open_page: Callable[..., Page]
) -> None:
    page = open_page(write_report(run))
    assert page.locator("img").count() == 0  # nothing is in view yet
    printed = page.pdf()
    assert printed.count(b"/Subtype /Image") == 58 + 48  # two of 60 suspects have none
    assert page.locator(".thumb[data-place]:empty").count() == 0


def test_a_suggestion_that_is_the_given_label_is_none(
    run: Run, open_page: Callable[..., Page]
) -> None:
    path = run.path / "verdicts.parquet"
    table = pq.read_table(path)
    names = table.column_names
    for kind in ("label", "name"):
        place = names.index(f"suggested_{kind}")
        table = table.set_column(place, f"suggested_{kind}", table[f"given_{kind}"])
    pq.write_table(table, path)
    page = open_page(write_report(Run(run.path)))
    page.keyboard.press("j")
    card = page.locator("#suspect-list .open").first
    sure = page.evaluate("percent(suspects.confidence[0], 0)")
    assert card.locator(".agrees").inner_text() == f"the final network agrees, {sure}"
    assert card.locator(".suggested").count() == 0
    page.keyboard.press("Enter")
    told = "none: the final network agrees with the given label"
    assert told in page.get_by_role("dialog").inner_text()
    pair = page.locator("#filter-pair option").nth(1)
    assert ", the final network agrees (" in (pair.text_content() or "")
