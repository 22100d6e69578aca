"""What docs/default.md says of the percentile that follows the noise, against the recordings."""

from __future__ import annotations

from typing import Any

from tests.test_docs import ROOT, rows, short, stored

RUNS: list[dict[str, Any]] = stored("percentile_recordings.json")["runs"]
PAGE = (ROOT / "docs/default.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.split("### Which percentile\n")[1].split("\n###")[0].split())


def expected(*words: str) -> list[float]:
    return [run["expected_f1"] for run in RUNS if any(word in run["case"] for word in words)]


def test_the_table_shows_all_that_changed() -> None:
    changed = [run for run in RUNS if run["now"] != run["before"]]
    changed.sort(key=lambda run: run["before"]["f1"] - run["now"]["f1"])
    table = rows("docs/default.md", "| labels | F1, sixth percentile |")
    assert [row[0] for row in table] == [run["case"] for run in changed]
    for row, run in zip(table, changed, strict=True):
        now = run["now"]
        figures = [short(run["before"]["f1"]), short(now["f1"]), short(now["best_f1"])]
        assert row[1:] == [*figures, f"{run['percentile']:g}"]
    assert f"recordings of {len(RUNS)} trainings; the other {len(RUNS) - len(changed)}" in SECTION


def test_what_the_mixture_expects() -> None:
    assert f"{max(expected('CIFAR-10N')):.2f}"[1:] == ".80" and ".80 at most on people" in SECTION
    quiet = expected("clean", "asymmetric")
    told = f"{min(quiet):.2f}"[1:] + " to " + f"{max(quiet):.2f}"[1:]
    assert f"{told} on clean and asymmetric ones" in SECTION
    assert f"{max(expected('weak')):.2f}"[1:] + " at most on a weak" in SECTION
    random = [f"uniform {noise} %" for noise in (10, 20, 30, 40, 60)]
    alike = [run for run in RUNS if "classes of" not in run["case"]]
    lowest = min(run["expected_f1"] for run in alike if any(each in run["case"] for each in random))
    assert f"{lowest:.2f}"[1:] + " and more on uniform noise from a tenth on" in SECTION


def test_what_is_lost_and_missed() -> None:
    gains = [r["now"]["f1"] - r["before"]["f1"] for r in RUNS if "f1" in r["now"]]
    assert f"One row loses, {short(-min(gains))}." in SECTION and sum(g < 0 for g in gains) == 1
    two = [run["now"] for run in RUNS if "uniform 2 %" in run["case"]]
    f1s = [f"{run['f1']:.2f}"[1:] for run in two]
    assert f"F1 {min(f1s)} to {max(f1s)} where" in SECTION
    (five,) = [r["now"] for r in RUNS if "uniform 5 %" in r["case"] and "CIFAR-10" in r["case"]]
    assert f"{five['f1']:.2f}"[1:] + " where " + f"{five['best_f1']:.2f}"[1:] + " is" in SECTION
    kept = [run["now"] for run in RUNS if run["expected_f1"] >= 0.97]
    assert max(f"{run['best_f1'] - run['f1']:.2f}"[1:] for run in kept) == ".03"
