"""What docs/default.md says of the valley below the cut, against the stored trainings."""

from __future__ import annotations

from statistics import mean
from typing import Any

from oddly.core.cut import SHALLOW
from tests.test_docs import ROOT, rows, short, stored

RUNS: list[dict[str, Any]] = stored("valley_digits.json")["rows"]
NOISY = [run for run in RUNS if run["wrong"]]
GAINS = [run["with"]["f1"] - run["without"]["f1"] for run in NOISY]
PAGE = (ROOT / "docs/default.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.split("### Into the valley\n")[1].split("\n##")[0].split())


def means(runs: list[dict[str, Any]], figure: str) -> list[float]:
    return [mean(run[rule][figure] for run in runs) for rule in ("without", "with")]


def cells(runs: list[dict[str, Any]]) -> list[str]:
    """A row of the table but for its first two cells."""
    if runs[0]["wrong"]:
        figures = [short(f1) for f1 in means(runs, "f1")]
        figures.append(short(mean(run["best_f1"] for run in runs)))
    else:
        figures = [f"{100 * removed:.2f} % removed" for removed in means(runs, "removed")] + ["–"]
    return [*figures, str(sum(run["doubted"] for run in runs))]


def test_the_table_is_what_is_stored() -> None:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in RUNS:
        groups.setdefault((run["labels"], run["network"]), []).append(run)
    table = rows("docs/default.md", "| F1 without the valley | F1 with it |")
    assert table == [[*name, *cells(runs)] for name, runs in groups.items()]
    assert all([run["seed"] for run in runs] == [0, 1, 2] for runs in groups.values())


def test_what_it_gains_and_costs() -> None:
    (before, after), recalls = means(NOISY, "precision"), means(NOISY, "recall")
    told = f"recall rises from {recalls[0]:.2f} to {recalls[1]:.2f} on average".replace(" 0.", " .")
    assert told in SECTION
    assert f"precision falls from {before:.2f} to {after:.2f}".replace(" 0.", " .") in SECTION
    better, worse = (sum(sign * gain > 0 for gain in GAINS) for sign in (1, -1))
    assert f"F1 rises in {better} of the {len(NOISY)} noisy trainings" in SECTION
    assert f"falls in {worse}" in SECTION and f"by {short(-min(GAINS))} at most" in SECTION
