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
    better, worse = (sum(sign * gain > 0 for gain in GAINS) for sign in (1, -1))
    assert worse == 0
    told = f"rises in {better} of the {len(NOISY)} noisy trainings, by {short(max(GAINS))} at most"
    assert f"F1 {told}, and falls in none" in SECTION
    for figure, word in (("recall", "rises"), ("precision", "falls")):
        before, after = (f"{value:.2f}".lstrip("0") for value in means(NOISY, figure))
        assert f"{figure} {word} from {before} to {after}" in SECTION
    lost = [run["without"]["precision"] - run["with"]["precision"] for run in NOISY]
    hit = NOISY[lost.index(max(lost))]
    where = f"({hit['labels']}, {hit['network']}, seed {hit['seed']})"
    assert f"by {short(max(lost))} where it falls most {where}" in SECTION
    clean = [run for run in RUNS if not run["wrong"]]
    assert all(run["with"] == run["without"] for run in clean)


def test_where_it_does_not_help() -> None:
    pairs = [run for run in RUNS if run["labels"] == "pair 40 %"]
    assert all(run["with"] == run["without"] for run in pairs)
    doubted = sum(run["doubted"] for run in pairs)
    told = f"{doubted} of these {len(pairs)} verdicts are doubted"
    assert f"{told}, and in the other {len(pairs) - doubted} no valley lies" in SECTION
    assert all(run["with"] == run["without"] for run in RUNS if run["doubted"])
    (close,) = [run for run in RUNS if run["doubted"] and run["labels"] == "instance 40 %"]
    named = f"{close['labels']} with {close['network']} and seed {close['seed']}"
    contrast = f"a contrast of {close['contrast']:.2f} where {close['needed']:.2f} is needed"
    f1s = f"F1 {short(close['with']['f1'])} where {short(close['best_f1'])} is possible"
    assert f"{named} has {contrast}, and {f1s}" in SECTION


def test_what_a_valley_is() -> None:
    assert SHALLOW == 0.8 and "less than four fifths of the density" in SECTION
