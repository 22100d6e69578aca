"""Pictures that bear two labels, on the page in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from oddly.records import Run
from oddly.report import write_report

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.mark.parametrize("losers", [2, 1])
def test_copies_that_lose_stay_whatever_the_threshold(
    made_up_run: Callable[..., Run], open_page: Callable[..., Page], losers: int
) -> None:
    """The best fitted example of all is a copy of a suspect, which loses too or goes by its score.

    The highest threshold takes that one off the page.
    """
    run = made_up_run()
    path = run.path / "verdicts.parquet"
    table = pq.read_table(path)
    scores = table["score"].to_numpy()
    removed = ~table["keep"].to_numpy()
    pair = [int(np.argmin(np.where(removed, scores, np.inf))), int(np.argmin(scores))]
    lost = pair[-losers:]
    reasons = ["same picture, another label" if i in lost else None for i in range(len(table))]
    keep = [kept and i not in pair for i, kept in enumerate(table["keep"].to_pylist())]
    table = table.set_column(table.column_names.index("keep"), "keep", [keep])
    pq.write_table(table.append_column("reason", [reasons]), path)
    worse, best = (f"train/{place:05d}.png" for place in pair)
    (run.path / "duplicates.csv").write_text(
        "group,id,given_name,conflicting,same\n"
        f"1,{worse},a,true,same pixels\n1,{best},b,true,same pixels\n"
    )
    page = open_page(write_report(Run(run.path)))
    are = "2 are copies" if losers == 2 else "1 is a copy"
    said = f"Of these, {are} of a picture that also occurs with another label."
    assert said in page.locator(".outcome").inner_text()
    words = page.locator(".words")
    told = [f"Same picture with another label: {each}" for each in (f"b ({best})", f"a ({worse})")]
    assert [words.nth(place).text_content() for place in range(2)][-losers:] == told[-losers:]
    page.keyboard.press("t")
    page.keyboard.press("End")
    page.locator("#found", has_text="(of ").wait_for()  # the gallery has followed
    assert [place for place in page.evaluate("order") if place < 2] == [0, 1][-losers:]
    assert words.nth(losers - 1).text_content() == told[1]
