"""What is stored, as rows; what is missing says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oddly.benchmarks.detection.conduct import Cell
from oddly.benchmarks.detection.store import Store

FIGURES = (
    *("precision", "recall", "f1", "best_f1", "average_precision", "auroc"),
    *("removed_fraction", "error_rate", "test_accuracy"),
)
COSTS = ("factor", "to_model", "seconds")
COLUMNS = {
    "precision": "P",
    "recall": "R",
    "f1": "F1",
    "best_f1": "best",
    "average_precision": "AP",
    "auroc": "AUROC",
    "removed_fraction": "removed",
    "factor": "cost",
    "to_model": "+ model",
    "seconds": "seconds",
    "test_accuracy": "test",
}
WIDTHS = {name: max(6, len(title) + 1) for name, title in COLUMNS.items()}
NOTE = """\
P, R, F1: at the method's own cut. best: the highest F1 of any cut on its ranking.
cost: passes relative to plain training; a forward pass alone counts as a third. + model: with a
training on the kept examples added if the method does not leave such a network.
seconds: of all its jobs, which may have shared a device. test: accuracy after the last epoch."""


def read_rows(cells: Iterable[Cell], store: Store) -> list[dict[str, Any]]:
    """One row per cell: case, method, seed, state (stored, failed, trained or missing), figures."""
    return [_row(cell, store) for cell in cells]


def _row(cell: Cell, store: Store) -> dict[str, Any]:
    row: dict[str, Any] = {"case": cell.case.name, "method": cell.method, "seed": cell.seed}
    stored = store.read_cell(cell.case.name, cell.method, cell.seed)
    nothing = dict.fromkeys((*FIGURES, *COSTS))
    if stored is None:
        done = [store.is_done(job) for job in cell.jobs()]
        state = "trained" if all(done) else "missing"
        return {**row, "state": state, "jobs_done": sum(done), "jobs": len(done), **nothing}
    jobs = len(cell.jobs())
    row |= {"state": "stored", "jobs_done": jobs, "jobs": jobs}
    if "error" in stored:
        return {**row, "state": "failed", "error": stored["error"], **nothing}
    figures = {name: stored["figures"][name] for name in FIGURES}
    return {**row, **figures, **{name: stored["cost"][name] for name in COSTS}}


def format_rows(rows: Iterable[dict[str, Any]]) -> list[str]:
    """The table as lines, one block per case."""
    titles = "".join(f"{title:>{WIDTHS[name]}}" for name, title in COLUMNS.items())
    lines, before = [], None
    for row in rows:
        if row["case"] != before:
            lines += [f"{row['case']}{_share_of_errors(row)}", f"  {'':<10}{titles}"]
            before = row["case"]
        lines.append(f"  {row['method']:<10}{_figures(row)}")
    return [*lines, "", *NOTE.splitlines()]


def _share_of_errors(row: dict[str, Any]) -> str:
    rate = row["error_rate"]
    return "" if rate is None else f", {100 * rate:.1f} % of the labels are wrong"


def _figures(row: dict[str, Any]) -> str:
    if row["state"] == "failed":
        return f"  failed: {row['error']}"
    if row["state"] == "trained":
        return "  trained; verdict missing (run with --next)"
    if row["state"] == "missing":
        return f"  missing, {row['jobs_done']} of {row['jobs']} trainings done"
    return "".join(f"{_text(name, row[name]):>{width}}" for name, width in WIDTHS.items())


def _text(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name == "removed_fraction":
        return f"{100 * value:.1f} %"
    if name == "seconds":
        return f"{value:.0f}"
    if name in ("factor", "to_model"):
        return f"{value:.2f}"
    if name == "test_accuracy":
        return f"{value:.1f}"
    return f"{value:.3f}".removeprefix("0")
