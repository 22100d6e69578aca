"""Cells read from the losses at some epoch of a trunk, not from its final accuracy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oddly.engine.config import RunConfig
from oddly.experiments.base import Cell, Job, PaperNumber
from oddly.experiments.results import Result

Snapshot = Mapping[str, Any]


def follow(config: RunConfig, *epochs: int) -> Job:
    """A trunk followed up to the last of these epochs, with a look at its losses at each."""
    return Job(config, until=max(epochs), snapshots=tuple(sorted(epochs)))


def look_cell(
    row: str,
    column: str,
    jobs: tuple[Job, ...],
    epoch: int,
    read: Callable[[Snapshot], float | None],
    paper: PaperNumber | None = None,
) -> Cell:
    """A number read from the snapshot of `epoch`."""

    def read_result(result: Result) -> float | None:
        return read(result.snapshots[str(epoch)])

    return Cell(row, column, paper, jobs, read_result)


def measured(figure: str) -> Callable[[Snapshot], float | None]:
    """`ks_noise_normal`, `ks_noise_simulated`: how far two kinds of losses lay apart."""
    return lambda snapshot: _number(snapshot[figure])


def at_percentile(
    percentile: float, figure: str, times: float = 1
) -> Callable[[Snapshot], float | None]:
    """`removed`, `precision`, `recall`, `f1`, `threshold`: had the run pruned there with this p."""
    key = f"{percentile:g}"
    return lambda snapshot: _number(snapshot["by_percentile"][key].get(figure), times)


def by_sweep(figure: str) -> Callable[[Snapshot], float | None]:
    """The same at p = 10, had the losses come from a sweep after epoch E."""
    return lambda snapshot: _number(snapshot.get("sweep", {}).get(figure))


def accuracy_at(epoch: int) -> Callable[[Result], float | None]:
    """Test accuracy, percent, after so many epochs."""

    def read(result: Result) -> float | None:
        return _number(result.curve["test_accuracy"][result.curve["epoch"].index(epoch)])

    return read


def _number(value: float | None, times: float = 1) -> float | None:
    return None if value is None else times * float(value)
