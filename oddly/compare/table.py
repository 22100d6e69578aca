"""From runs to a row of figures, and from rows to the cells of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from oddly.records import Run

FIGURES = {
    "test_accuracy": ("test accuracy", "{:.2f}", " %"),
    "precision": ("precision", "{:.3f}", ""),
    "recall": ("recall", "{:.3f}", ""),
    "f1": ("F1", "{:.3f}", ""),
    "average_precision": ("AP", "{:.3f}", ""),
    "seconds": ("seconds", "{:.1f}", ""),
}
"""Key in a run's summary → heading, format, unit."""
OF_A_VERDICT = ("precision", "recall", "f1")
COLUMNS = ("method", *(heading for heading, _, _ in FIGURES.values()), "passes", "cost")


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
    """How many of the seeds' verdicts are not to be trusted, and why the first is not."""
    told = [doubt for doubt in doubts if doubt]
    return f"{len(told)} of {len(doubts)} verdicts: {told[0]}" if told else None


def cells_of(row: Mapping[str, Any]) -> list[str]:
    """A row as text: `94.20 ± 0.31 %`."""
    cells = [str(row["method"])]
    for name, (_, pattern, unit) in FIGURES.items():
        figure = row[name]
        if figure["mean"] is None:
            cells.append("–")
            continue
        spread = f" ± {pattern.format(figure['std'])}" if figure["std"] is not None else ""
        cells.append(pattern.format(figure["mean"]) + spread + unit)
    cells.append("–" if row["passes"] is None else f"{row['passes']:g}")
    cells.append("–" if row["cost"] is None else f"{row['cost']:.2f}×")
    return cells


def markdown(rows: Sequence[Mapping[str, Any]], leave_out: Sequence[str] = ()) -> str:
    """The table as a page of the docs shows it, without the columns that are left out."""
    lines = [COLUMNS, *(cells_of(row) for row in rows)]
    shown = [i for i, name in enumerate(COLUMNS) if name not in leave_out]
    text = ["| " + " | ".join(line[i] for i in shown) + " |" for line in lines]
    return "\n".join([text[0], "|---" * len(shown) + "|", *text[1:]]) + "\n"
