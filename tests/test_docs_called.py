"""What docs/constants.md says of classes called another, against the stored trainings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oddly.core.sentinels import called
from oddly.core.sentinels.learnt import SURE
from tests.pages import ROOT, rows, short, stored

ROWS: list[dict[str, Any]] = stored("called.json")["rows"]
PAGE = (ROOT / "docs/constants.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.split("## Called another\n")[1].split("\n## ")[0].split())
NAMES = {
    "digits": "1,700 digits, enlarged to 32 pixels",
    "mnist": "1,700 of MNIST",
    "fashion": "1,700 of Fashion-MNIST",
    "cifar10": "1,700 of CIFAR-10",
}
RULED = ("half", "one", "both", "three", "asymmetric")
NOISY = [row for row in ROWS if row["labels"] != "clean"]
OTHERS = [row for row in NOISY if row["labels"].split()[0] not in RULED]


def gain(row: dict[str, Any]) -> float:
    return float(row["with"]["f1"] - row["without"]["f1"])


def mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)


def line_of(row: dict[str, Any]) -> list[str]:
    """As the table has it."""
    labels = row["labels"]
    if labels in ("aggregate", "random1"):
        labels = f"CIFAR-10N {labels}"
    elif labels != "clean":
        labels += " %"
    what = [NAMES.get(row["images"], row["images"]), labels]
    found = f"{row['called']:g}, {row['truly']:g}"
    if labels == "clean":
        removed = [f"{100 * row[side]['removed']:.1f} % removed" for side in ("without", "with")]
        return [*what, found, *removed, "–"]
    f1 = [short(row[side]["f1"]) for side in ("without", "with")]
    return [*what, found, *f1, short(row["best_f1"])]


def test_the_table_is_what_is_stored() -> None:
    table = rows("docs/constants.md", "| images | labels | found, truly | F1 without |")
    assert table == [line_of(row) for row in ROWS]
    assert len(ROWS) == 106


def test_what_it_gains_and_costs() -> None:
    ruled = [row for row in NOISY if row not in OTHERS]
    gains = [gain(row) for row in ruled]
    up, down = (sum(each > 0 for each in gains), sum(each < 0 for each in gains))
    beyond = sum(row["with"]["f1"] > row["best_f1"] for row in ruled)
    said = f"F1 rises in {up} of these {len(ruled)} rows, by {short(mean(gains))} on average"
    assert f"{said} over all of them, falls in {down}, by .003 at most" in SECTION
    assert f"beyond what any one cut could reach in {beyond}" in SECTION and min(gains) > -0.003
    changed = [gain(row) for row in OTHERS if gain(row)]
    assert f"changes {len(changed)} of the {len(OTHERS)} rows with other noise" in SECTION
    assert min(changed) > 0
    assert all(row["with"] == row["without"] for row in ROWS if row["labels"] == "clean")


def test_whom_it_finds() -> None:
    found, truly = (sum(row[name] for row in ROWS) for name in ("called", "truly"))
    assert found - truly == 1 / 2 and f"All but one of the {2 * found:g} classes found" in SECTION
    halves = ([r for r in NOISY if r["labels"] == f"half {rate}"] for rate in (20, 30, 40))
    gains = [short(mean(gain(row) for row in rows)) for rows in halves]
    assert f"F1 rises by {gains[0]}, {gains[1]} and {gains[2]} on average" in SECTION
    assert not any(row["called"] for row in ROWS if row["images"] == "leaves")


def test_the_numbers_are_those_of_the_code() -> None:
    assert (called.LEAST, called.BLURRED, called.SUREST, called.FEWEST) == (0.08, 0.12, 0.25, 10)
    assert SURE == 8.5
