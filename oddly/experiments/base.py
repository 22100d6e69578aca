"""What every table and figure is made of: cells, and the trainings that fill them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from oddly.engine.config import RunConfig
from oddly.errors import InputError, count, first_few, first_line
from oddly.experiments.results import Result, Store, run_name
from oddly.experiments.sizes import SIZES, Size

FROM_RUN = "run:"  # prefix of `weights` for those of an earlier run


@dataclass(frozen=True)
class PaperNumber:
    """A number as the paper prints it."""

    value: float
    spread: float | None = None

    def __str__(self) -> str:
        digits = 1 if self.value == round(self.value, 1) else 2
        spread = "" if self.spread is None else f"±{self.spread:.1f}"
        return f"{self.value:.{digits}f}{spread}"


@dataclass(frozen=True)
class Job:
    """One training."""

    config: RunConfig
    trunk: RunConfig | None = None
    """A run to take the epochs before E from; it must be identical up to there."""
    until: int | None = None
    """Number of epochs to train, if not all are needed."""
    snapshots: tuple[int, ...] = ()
    """Epochs after which to store numbers about the losses of all examples."""

    also_test: str | None = None
    """Another dataset on whose test set to test the finished network."""
    after: Job | None = None
    """A job to start from the weights of."""

    @property
    def fork_epoch(self) -> int:
        """The number of epochs to take over from the trunk; 0 without a trunk.

        It is one less than E: the fork trains epoch E itself and judges as any run does.
        """
        return int(self.config.settings["prune_after"]) - 1 if self.trunk else 0

    def is_stored(self, result: Result | None) -> bool:
        if result is None:
            return False
        looked = all(str(epoch) in result.snapshots for epoch in self.snapshots)
        looked = looked and self.also_test in (None, *result.also)
        return looked and (self.until is not None or result.is_finished)


def method_job(
    size: Size,
    row: str,
    data: str,
    seed: int,
    methods: Mapping[str, str] | None = None,
    percentile: float | None = None,
    **options: Any,
) -> Job:
    """The training for a row: ERM is the trunk, ODD forks from it, other methods train alone.

    `methods` maps the rows of those to their names. `percentile` is for ODD, if not the default.
    """
    if methods and row in methods:
        return Job(size.config(data, seed, method=methods[row], **options))
    trunk = size.trunk(data, seed, **options)
    if row == "ERM":
        return Job(trunk)
    rule = {} if percentile is None else {"percentile": percentile}
    return Job(size.paper(data, seed, **options, **rule), trunk)


def final_accuracy(result: Result) -> float | None:
    """The test accuracy of the last epoch, in percent."""
    value = result.summary.get("test_accuracy")
    return None if value is None else float(value)


@dataclass(frozen=True)
class Cell:
    """One number: the paper's, and the trainings, one per seed, that give ours."""

    row: str
    column: str
    paper: PaperNumber | None
    jobs: tuple[Job, ...]
    """One per seed."""
    read: Callable[[Result], float | None] = final_accuracy
    joint: Callable[[Sequence[Result]], float | None] | None = None
    """Instead of `read`, for a number that is about all seeds together."""


@dataclass(frozen=True)
class Filled:
    """A cell with its stored values."""

    row: str
    column: str
    paper: PaperNumber | None
    values: tuple[float, ...]

    @property
    def ours(self) -> float | None:
        return mean(self.values) if self.values else None

    @property
    def spread(self) -> float | None:
        return stdev(self.values) if len(self.values) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "row": self.row,
            "column": self.column,
            "paper": self.paper and self.paper.value,
            "paper_spread": self.paper and self.paper.spread,
            "ours": self.ours,
            "spread": self.spread,
            "n": len(self.values),
        }


@dataclass(frozen=True)
class Experiment:
    """One table or figure; the docstring of its file gives reference, command, cost, numbers."""

    name: str
    title: str
    cost: str
    """The cost of all cells in the paper's setting, in words."""
    cells: Callable[[Size, int], Sequence[Cell]]
    """Makes the cells for a size and a number of seeds; most valuable first."""
    sizes: Mapping[str, Size] = field(default_factory=lambda: SIZES)
    unit: str = "%"
    digits: int = 2
    draw: Callable[[Drawing], Sequence[Path]] | None = None
    """Writes the figures; returns their files."""
    about: str = ""
    """A remark to print below the table: what the paper says in words."""

    def cost_of(self, size: Size, cells: Sequence[Cell]) -> str:
        """The cost in words: `cost` in the paper's setting, else from the cost per training."""
        if not size.cost:
            return self.cost
        jobs = {run_name(job.config) for cell in cells for job in cell.jobs}
        return f"{count(len(jobs), 'training')}, {size.cost}"


@dataclass(frozen=True)
class Drawing:
    """What a figure is drawn from, and the folder to write it to."""

    store: Store
    size: Size
    seeds: int
    out: Path
    data_dir: Path | None = None
    """For figures that show the images themselves."""


def fill(cells: Sequence[Cell], store: Store) -> list[Filled]:
    """Read the stored values of each cell."""
    filled = []
    for cell in cells:
        results = [(job, store.find(job.config)) for job in cell.jobs]
        known = [result for job, result in results if result and job.is_stored(result)]
        try:
            numbers = _read_numbers(cell, known)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            names = first_few([run_name(job.config) for job in cell.jobs])
            raise InputError(
                f"cannot read '{cell.row}', '{cell.column}' from {names}: {first_line(error)}"
            ) from error
        filled.append(Filled(cell.row, cell.column, cell.paper, numbers))
    return filled


def _read_numbers(cell: Cell, known: Sequence[Result]) -> tuple[float, ...]:
    if cell.joint:
        whole = bool(known) and len(known) == len(cell.jobs)
        values = [cell.joint(known)] if whole else []
    else:
        values = [cell.read(result) for result in known]
    return tuple(value for value in values if value is not None)


def missing_jobs(cells: Sequence[Cell], store: Store) -> list[Job]:
    """The trainings that are missing, most valuable first: the first seed of all cells first."""
    seeds = max((len(cell.jobs) for cell in cells), default=0)
    jobs: list[Job] = []
    for seed in range(seeds):
        for cell in cells:
            job = cell.jobs[seed] if seed < len(cell.jobs) else None
            if job and job not in jobs and not job.is_stored(store.find(job.config)):
                jobs.append(job)
    return jobs
