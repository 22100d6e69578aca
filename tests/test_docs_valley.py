"""What docs/constants.md says of the valley below the cut, against the stored trainings."""

from __future__ import annotations

from statistics import mean
from typing import Any

from oddly.core.sentinels.cut import SHALLOW
from oddly.core.sentinels.learnt import SURE
from tests.pages import ROOT, rows, short, stored

RUNS: list[dict[str, Any]] = stored("valley_digits.json")["rows"]
NOISY = [run for run in RUNS if run["wrong"]]
GAINS = [run["with"]["f1"] - run["without"]["f1"] for run in NOISY]
PAGE = (ROOT / "docs/constants.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.split("## Into the valley\n")[1].split("\n##")[0].split())


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
    table = rows("docs/constants.md", "| F1 without the valley | F1 with it |")
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
    assert min(run["best_f1"] - run["with"]["f1"] for run in pairs) > 0.08
    assert "There F1 is far from what is possible" in SECTION


def test_what_a_valley_is() -> None:
    assert all(run["needed"] <= SURE for run in RUNS)
    assert SHALLOW == 0.8 and "less than four fifths of the density" in SECTION


RECORDED: list[dict[str, Any]] = stored("valley_recordings.json")["runs"]


def test_the_recordings_that_changed() -> None:
    def said(run: dict[str, Any]) -> tuple[Any, Any]:
        return tuple((run[k].get("f1"), run[k]["removed"]) for k in ("before", "now"))

    changed = [run for run in RECORDED if len(set(said(run))) > 1]
    changed.sort(key=lambda run: run["before"]["f1"] - run["now"]["f1"])
    table = rows("docs/constants.md", "| recorded training | F1, rule before |")
    for row, run in zip(table, changed, strict=True):
        figures = [short(run["before"]["f1"]), short(run["now"]["f1"]), short(run["best_f1"])]
        doubts = ", ".join("yes" if run[k]["doubted"] else "no" for k in ("before", "now"))
        assert row == [run["case"], *figures, doubts]
    gains = {run["case"]: run["now"]["f1"] - run["before"]["f1"] for run in changed}
    better = sum(gain > 0 for gain in gains.values())
    assert f"of {len(RECORDED)} trainings at E" in SECTION
    told = f"{len(changed)} changed, {better} for the better and {len(changed) - better} for the"
    assert told in SECTION
    trusted = [run for run in changed if not run["now"]["doubted"]]
    assert len(changed) - len(trusted) == 1
    assert max(-gains[run["case"]] for run in trusted) < 0.0125
    assert ".012 at most but for one training that is doubted" in SECTION


def test_how_often_the_interval_held_the_truth() -> None:
    trusted = [run for run in RECORDED if not run["now"]["doubted"]]
    held = []
    for rule in ("before", "now"):
        intervals = [(run[rule]["noise_estimate"], run["error_rate"]) for run in trusted]
        held.append(sum(low <= wrong <= high for (_, low, high), wrong in intervals))
    assert f"in {held[1]} of the {len(trusted)} that are not doubted ({held[0]} before)" in SECTION
