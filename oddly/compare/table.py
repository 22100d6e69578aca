"""From runs to a row of figures, and from rows to the cells of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any, NamedTuple

from oddly.errors import count
from oddly.records import Run


class Figure(NamedTuple):
    """How a figure of a run's summary is shown."""

    heading: str
    pattern: str
    unit: str = ""
    times: float = 1


FIGURES = {
    "test_accuracy": Figure("test accuracy", "{:.2f}", " %"),
    "removed_fraction": Figure("removed", "{:.1f}", " %", times=100),
    "precision": Figure("precision", "{:.3f}"),
    "recall": Figure("recall", "{:.3f}"),
    "f1": Figure("F1", "{:.3f}"),
    "average_precision": Figure("AP", "{:.3f}"),
    "seconds": Figure("seconds", "{:.1f}"),
}
"""By key in the summary."""
OF_A_VERDICT = ("removed_fraction", "precision", "recall", "f1")
UNKNOWN = "–"
COLUMNS = ("method", *(figure.heading for figure in FIGURES.values()), "passes", "cost")


def make_row(
    method: str, runs: Sequence[Run], yardstick: Sequence[Run], failure: str | None
) -> dict[str, Any]:
    """Mean and standard deviation of each figure over the seeds; cost over ERM's."""
    summaries = [run.summary for run in runs]
    row: dict[str, Any] = {"method": method, "runs": len(runs), "failure": failure}
    judges = any(each.get("rule") or each.get("counterfactual") for each in summaries)
    for name in FIGURES:
        known = [each[name] for each in summaries if each.get(name) is not None]
        if not judges and name in OF_A_VERDICT:  # keeping everything is no verdict
            known = []
        row[name] = {
            "mean": mean(known) if known else None,
            "std": stdev(known) if len(known) > 1 else None,
            "values": known,
        }
    row["doubt"] = tell_doubts([run.doubt for run in runs])
    row["settings"] = runs[0].config["settings"] if runs else {}
    row["epochs"] = summaries[0]["epochs"] if summaries else None
    row["passes"] = summaries[0]["passes"] if summaries else None
    base = [run.summary["seconds"] for run in yardstick]
    row["cost"] = row["seconds"]["mean"] / mean(base) if base and summaries else None
    return row


def tell_doubts(doubts: Sequence[str | None]) -> str | None:
    """How many of the seeds' verdicts are unreliable, and why the first one is."""
    told = [doubt for doubt in doubts if doubt]
    return f"{len(told)} of {count(len(doubts), 'verdict')}: {told[0]}" if told else None


def cells_of(row: Mapping[str, Any]) -> list[str]:
    """A row as text, in the order of `COLUMNS`: `94.20 ± 0.31 %`."""
    cells = [str(row["method"])]
    for name, (_, pattern, unit, times) in FIGURES.items():
        figure = row.get(name)  # comparisons older than a figure lack it
        if figure is None or figure["mean"] is None:
            cells.append(UNKNOWN)
            continue
        known = [times * figure[key] for key in ("mean", "std") if figure[key] is not None]
        cells.append(" ± ".join(pattern.format(value) for value in known) + unit)
    cells.append(UNKNOWN if row["passes"] is None else f"{row['passes']:g}")
    cells.append(UNKNOWN if row["cost"] is None else f"{row['cost']:.2f}×")
    return cells


def lines_of(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The headings, then the rows, without columns that are empty for all methods."""
    columns = zip(COLUMNS, *(cells_of(row) for row in rows), strict=True)
    known = [column for column in columns if not rows or set(column[1:]) != {UNKNOWN}]
    return [list(line) for line in zip(*known, strict=True)]


def markdown(rows: Sequence[Mapping[str, Any]], leave_out: Sequence[str] = ()) -> str:
    """The table as a page of the docs shows it, without the columns that are left out."""
    lines = [COLUMNS, *(cells_of(row) for row in rows)]
    shown = [i for i, name in enumerate(COLUMNS) if name not in leave_out]
    text = ["| " + " | ".join(line[i] for i in shown) + " |" for line in lines]
    return "\n".join([text[0], "|---" * len(shown) + "|", *text[1:]]) + "\n"
