"""What the pages say is what the stored results hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def stored(name: str) -> dict[str, Any]:
    return dict(json.loads((ROOT / "oddly/results" / name).read_text()))


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table that follows a line with `heading`, stars and spaces taken off."""
    lines = (ROOT / page).read_text().split(heading, 1)[1].splitlines()[2:]
    table = []
    for line in lines:
        if not line.startswith("|"):
            break
        table.append([cell.strip(" *") for cell in line.strip("|").split("|")])
    return table


def short(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def test_the_table_of_the_default() -> None:
    cases = {case["case"]: case for case in stored("sentinels_resnet18_30_epochs.json")["cases"]}
    table = rows("docs/default.md", "paper's rule (E = 11, p = 10) |")
    assert len(table) == len(cases) == 7
    for name, default, best, removed, paper in table:
        case = cases[re.sub(r" \([\d.]+ %\)$", "", name)]
        assert removed == f"{100 * case['automatic']['removed']:.1f} %"
        if "f1" in case["automatic"]:
            assert (default, best) == (
                short(case["automatic"]["f1"]),
                short(case["automatic"]["best_f1"]),
            )
            assert paper == short(case["paper"]["f1"])
        else:
            assert paper == f"{100 * case['paper']['removed']:.1f} % removed"


@pytest.mark.parametrize(
    ("row", "data", "method"),
    [
        (0, "cifar10", "erm"),
        (1, "cifar10", "odd --preset paper"),
        (2, "cifar10", "odd, default"),
        (3, "cifar10n:random1", "odd, default"),
    ],
)
def test_the_table_of_the_readme(row: int, data: str, method: str) -> None:
    runs = stored("cifar10_resnet18_30_epochs.json")["runs"]
    run = next(run for run in runs if (run["data"], run["method"]) == (data, method))
    cells = rows("README.md", "| test accuracy | precision | recall | F1 |")[row]
    assert cells[2] == f"{run['test_accuracy']:.1f} %"
    for cell, figure in zip(cells[3:], ("precision", "recall", "f1"), strict=True):
        nothing_removed = not run["removed_fraction"]
        assert cell == ("–" if nothing_removed else f"{run[figure]:.2f}".lstrip("0"))
