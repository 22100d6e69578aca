"""What the docs say of images of no class, against the stored rows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pages import ROOT, rows, short, stored

ROWS: list[dict[str, Any]] = stored("foreign_images.json")["rows"]
TABLE = {row[0]: row[1:] for row in rows("docs/clean.md", "| foreign images | F1 | best |")}
PAGE = (ROOT / "docs/clean.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.split("### Images of no class")[1].split("\n##")[0].split())


def of(labels: str, rate: int) -> list[dict[str, Any]]:
    return [row for row in ROWS if (row["labels"], row["foreign"]) == (labels, rate)]


@pytest.mark.parametrize(
    ("labels", "rate", "name"),
    [
        *(("any", rate, f"{rate} %, under any label") for rate in (10, 20, 40)),
        ("alike", 20, "20 %, under one of three classes that they look like"),
    ],
)
def test_the_table_is_what_is_stored(labels: str, rate: int, name: str) -> None:
    found = of(labels, rate)
    assert [row["seed"] for row in found] == [0, 1]
    ours, theirs = ("f1", "best_f1", "average_precision"), ("f1", "average_precision")
    columns = [("oddly", each) for each in ours] + [("cleanlab", each) for each in theirs]
    assert TABLE[name] == [
        ", ".join(short(row[who][figure]) for row in found) for who, figure in columns
    ]


def test_the_cut_and_the_interval_under_any_label() -> None:
    made = [row for row in ROWS if row["labels"] == "any"]
    assert "within .04 of the best" in SECTION and "in all six runs" in SECTION and len(made) == 6
    assert all(row["oddly"]["best_f1"] - row["oddly"]["f1"] < 0.04 for row in made)
    assert all(row["oddly"]["f1"] > row["cleanlab"]["f1"] + 0.15 for row in made)
    for row in made:
        low, _, high = row["estimated_noise"]
        assert low <= row["foreign"] / 100 <= high


def test_those_that_look_like_their_label() -> None:
    made = of("alike", 20)
    highest = [row["estimated_noise"][2] for row in made]
    assert sum(each < 0.2 for each in highest) == 1
    assert f"at most {100 * min(highest):.0f} %" in SECTION
    f1 = sorted(f"{row['oddly']['f1']:.2f}".lstrip("0") for row in made)
    best = f"{max(row['oddly']['best_f1'] for row in made):.2f}".lstrip("0")
    page = " ".join((ROOT / "docs/default.md").read_text().split())
    assert f"F1 {f1[0]} to {f1[1]} where no cut reaches more than {best}" in page
