"""Pictures that bear two labels, on the page in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from oddly.records import Run
from oddly.report import write_report

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_copies_under_two_labels_stay_whatever_the_threshold(
    made_up_run: Callable[..., Run], open_page: Callable[..., Page]
) -> None:
    """The best fitted example of all is a copy of the worst."""
    run = made_up_run()
    path = run.path / "verdicts.parquet"
    table = pq.read_table(path)
    scores = table["score"].to_numpy()
    pair = [int(np.argmax(scores)), int(np.argmin(scores))]
    reasons = ["same picture, another label" if i in pair else None for i in range(len(table))]
    keep = [kept and i not in pair for i, kept in enumerate(table["keep"].to_pylist())]
    table = table.set_column(table.column_names.index("keep"), "keep", [keep])
    pq.write_table(table.append_column("reason", [reasons]), path)
    worst, best = (f"train/{place:05d}.png" for place in pair)
    (run.path / "duplicates.csv").write_text(
        "group,id,given_name,conflicting,same\n"
        f"1,{worst},a,true,same pixels\n1,{best},b,true,same pixels\n"
    )
    page = open_page(write_report(Run(run.path)))
    said = "Of these, 2 are copies of a picture that also occurs under another label."
    assert said in page.locator(".outcome").inner_text()
    words = page.locator(".words")
    told = [f"Same picture, another label: {each}" for each in (f"b ({best})", f"a ({worst})")]
    assert [words.nth(place).text_content() for place in range(2)] == told
    page.keyboard.press("t")
    page.keyboard.press("End")
    page.locator("#found", has_text="(of ").wait_for()  # the gallery has followed
    assert page.evaluate("order").count(1) == 1
    assert words.nth(1).text_content() == told[1]
