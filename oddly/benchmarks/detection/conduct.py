"""Run the next jobs until the table is full or the time is up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

from oddly.benchmarks.detection.cases import Case
from oddly.benchmarks.detection.jobs import Job
from oddly.benchmarks.detection.methods import METHODS, finish_cell
from oddly.benchmarks.detection.store import Store
from oddly.benchmarks.detection.training import Conditions, train_job
from oddly.engine.pool import run_jobs

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Cell:
    """One case under one method."""

    case: Case
    method: str
    seed: int

    def jobs(self) -> Sequence[Job]:
        return METHODS[self.method].jobs(self.case, self.seed)

    def is_stored(self, store: Store) -> bool:
        return store.cell(self.case.name, self.method, self.seed).exists()

    def lacks_package(self) -> str | None:
        package = METHODS[self.method].package
        return package if package and find_spec(package) is None else None


def list_cells(cases: Iterable[Case], methods: Iterable[str], seed: int) -> list[Cell]:
    return [Cell(case, method, seed) for case in cases for method in methods]


def finish_ready(cells: Iterable[Cell], store: Store, tell: Tell) -> None:
    """Write every missing cell whose jobs are all done."""
    for cell in cells:
        if cell.is_stored(store) or not all(store.is_done(job) for job in cell.jobs()):
            continue
        if package := cell.lacks_package():
            tell(f"{cell.case.name}, {cell.method}: trained; install {package} for the verdict")
            continue
        store.write_cell(finish_cell(cell.case, cell.method, cell.seed, store))
        tell(f"{cell.case.name}, {cell.method}: stored")


def missing_jobs(cells: Iterable[Cell], store: Store) -> list[Job]:
    """Each once, in the order of the cells."""
    jobs = {job: None for cell in cells if not cell.is_stored(store) for job in cell.jobs()}
    return [job for job in jobs if not store.is_done(job)]


@dataclass
class Pace:
    """Estimates the time of a job from those that this process has run before."""

    plain_seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    """Seconds of one plain training, by network and data."""

    def learn(self, job: Job, report: dict[str, Any]) -> None:
        if report["passes"]:
            seconds = report["seconds"] * report["plain_passes"] / report["passes"]
            self.plain_seconds[_kind(job)] = seconds

    def expect(self, job: Job) -> float:
        """Estimated seconds; 0 if no similar job has run yet."""
        return job.share * self.plain_seconds.get(_kind(job), 0.0)


def _kind(job: Job) -> tuple[str, str]:
    return (job.case.recipe.model if job.case.recipe else "", job.case.data)


def conduct(cells: Sequence[Cell], conditions: Conditions, tell: Tell) -> None:
    """Train what is missing, `conditions.at_once` jobs at a time; store cells as they are done."""
    store = conditions.store
    finish_ready(cells, store, tell)
    pace, waiting = Pace(), missing_jobs(cells, store)
    work = partial(train_job, conditions=conditions)
    for job, report in run_jobs(
        waiting, work, conditions.at_once, conditions.deadline, pace.expect
    ):
        pace.learn(job, report)
        where = f"{job.case.name}, {job.name}"
        if "error" in report:
            tell(f"{where}: {report['error']}")
        elif report["done"]:
            tell(f"{where}: trained in {report['seconds']:.0f} s")
        else:
            tell(f"{where}: out of time, continues next time")
        finish_ready([cell for cell in cells if job in cell.jobs()], store, tell)
