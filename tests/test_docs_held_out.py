"""What docs/clean.md says of Fashion-MNIST and of MNIST, against the stored runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pages import ROOT, rows, short, stored

RUNS: list[dict[str, Any]] = stored("held_out_fashion.json")["runs"]
TABLE = {row[0]: row[1:] for row in rows("docs/clean.md", "| labels | F1 | best | F1 with the")}
PAGE = (ROOT / "docs/clean.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.split("### On other images\n")[1].split("\n##")[0].split())


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
        ("instance20", "20 % by what the image looks like"),
        ("instance40", "40 % by what the image looks like"),
        ("next20", "20 % of every class called the next"),
        ("next40", "40 % of every class called the next"),
    ],
)
def test_the_table_is_what_is_stored(labels: str, row: str) -> None:
    runs = of(labels)
    assert len(runs) == 3
    assert TABLE[row] == [
        span(runs, "oddly", "f1"),
        span(runs, "oddly", "best_f1"),
        span(runs, "sixth_percentile", "f1"),
        span(runs, "cleanlab", "f1"),
    ]
    assert all(run["oddly"]["f1"] > run["cleanlab"]["f1"] for run in runs)


def test_how_often_the_interval_held() -> None:
    made = [run for run in RUNS if run["labels"] != "clean"]
    held = [r["estimated_noise"][0] <= r["wrong"] <= r["estimated_noise"][2] for r in made]
    assert len(held) == 24 and all(held) and "in all 24 runs" in SECTION


def test_the_published_labels() -> None:
    (clean,) = of("clean")
    suspects = [f"{100 * clean[who]['removed']:.1f} % suspects" for who in ("oddly", "cleanlab")]
    assert TABLE["as published"] == [suspects[0], "–", "–", suspects[1]]
    by_class = clean["suspects"]
    assert sum(by_class.values()) == round(6_000 * clean["oddly"]["removed"])
    assert by_class["shirt"] / sum(by_class.values()) == pytest.approx(2 / 5, abs=0.03)
    assert "two in five are shirts" in SECTION


def test_the_readme() -> None:
    random = [run for run in RUNS if run["labels"].startswith("uniform")]
    spans = []
    for who in ("oddly", "cleanlab"):
        values = [f"{run[who]['f1']:.2f}"[1:] for run in random]
        spans.append(f"{min(values)} to {max(values)}")
    said = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    ours, theirs = spans
    assert f"F1 {ours}, where cleanlab on the same features gets {theirs} (" in said


def test_mnist() -> None:
    runs: list[dict[str, Any]] = stored("held_out_mnist.json")["runs"]
    table = rows("docs/clean.md", "| labels, two seeds | F1 |")
    kinds = list(dict.fromkeys(run["labels"] for run in runs))
    assert len(table) == len(kinds)
    far, gains = 0.0, []
    for row, kind in zip(table, kinds, strict=True):
        these = [run for run in runs if run["labels"] == kind]
        if kind == "clean":
            (one,) = these
            told = [
                f"{100 * one[k]['removed']:.1f} % suspects" for k in ("oddly", "sixth_percentile")
            ]
            assert row[1:] == [told[0], "–", told[1]]
            continue
        figures = (("oddly", "f1"), ("oddly", "best_f1"), ("sixth_percentile", "f1"))
        assert row[1:] == [", ".join(short(run[w][f]) for run in these) for w, f in figures]
        for run in these:
            low, _, high = run["estimated_noise"]
            assert low <= run["wrong"] <= high
            gains.append(run["oddly"]["f1"] - run["sixth_percentile"]["f1"])
            far = max(far, run["oddly"]["best_f1"] - run["oddly"]["f1"])
    assert f"within {short(far)} of the best everywhere" in SECTION
    words = f"cost {short(-min(gains))} at most there, and gain up to {max(gains):.2f}"
    assert words.replace("0.", ".") in SECTION
    assert min(gains) > -0.01
