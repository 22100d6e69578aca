"""What docs/clean.md says of images that had no part in any choice, against the stored runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.test_docs import ROOT, rows, short, stored

RUNS: list[dict[str, Any]] = stored("held_out_fashion.json")["runs"]
TABLE = {row[0]: row[1:] for row in rows("docs/clean.md", "| labels | F1 | best | F1 with")}
SECTION = (ROOT / "docs/clean.md").read_text(encoding="utf-8").split("no part in any choice\n")[1]


def of(labels: str) -> list[dict[str, Any]]:
    return [run for run in RUNS if run["labels"] == labels]


def span(runs: list[dict[str, Any]], who: str, figure: str) -> str:
    values = [run[who][figure] for run in runs]
    return f"{short(min(values))} to {short(max(values))}"


@pytest.mark.parametrize(
    ("labels", "row"),
    [
        ("uniform10", "10 % replaced at random"),
        ("uniform20", "20 % replaced at random"),
        ("uniform40", "40 % replaced at random"),
        ("asymmetric30", "30 % of six classes called another"),
    ],
)
def test_the_table_is_what_is_stored(labels: str, row: str) -> None:
    runs = of(labels)
    assert len(runs) == 3
    assert TABLE[row] == [
        span(runs, "oddly", "f1"),
        span(runs, "oddly", "best_f1"),
        span(runs, "percentile_10", "f1"),
        span(runs, "cleanlab", "f1"),
    ]
    assert all(run["oddly"]["f1"] > run["cleanlab"]["f1"] for run in runs)


def test_how_often_the_interval_held() -> None:
    made = [run for run in RUNS if run["labels"] != "clean"]
    missed = [
        r for r in made if not r["estimated_noise"][0] <= r["wrong"] <= r["estimated_noise"][2]
    ]
    assert (len(made), len(missed)) == (12, 4) and "in eight of twelve runs" in SECTION
    below = max(100 * (run["estimated_noise"][0] - run["wrong"]) for run in missed)
    assert f"four times up to {below:.1f} point below it" in SECTION


def test_the_published_labels_and_the_sentences() -> None:
    (clean,) = of("clean")
    suspects = [f"{100 * clean[who]['removed']:.1f} % suspects" for who in ("oddly", "cleanlab")]
    assert TABLE["as published"] == [suspects[0], "–", "–", suspects[1]]
    told = SECTION.replace("\n", " ")
    spans = {
        name: (min(values), max(values))
        for name in ("uniform10", "uniform20")
        for values in [[f"{run['oddly']['precision']:.2f}"[1:] for run in of(name)]]
    }
    (a, b), (c, d) = spans.values()
    assert f"(precision {a} to {b} and {c} to {d}, recall" in told
    recalls = [f"{run['oddly']['recall']:.2f}"[1:] for n in spans for run in of(n)]
    assert f"recall {min(recalls)} to {max(recalls)})" in told
