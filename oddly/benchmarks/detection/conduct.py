"""Run the next jobs until the table is full or the time is up."""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, TypeVar

import torch

from oddly.benchmarks.detection.cases import Case
from oddly.benchmarks.detection.jobs import Job
from oddly.benchmarks.detection.methods import METHODS, finish_cell
from oddly.benchmarks.detection.store import Store
from oddly.benchmarks.detection.training import Conditions, train_job
from oddly.errors import InputError

Tell = Callable[[str], None]
T = TypeVar("T")


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
            tell(f"{cell.case.name}, {cell.method}: trained; the verdict waits for {package}")
            continue
        store.write_cell(finish_cell(cell.case, cell.method, cell.seed, store))
        tell(f"{cell.case.name}, {cell.method}: stored")


def missing_jobs(cells: Iterable[Cell], store: Store) -> list[Job]:
    """Each once, in the order of the cells."""
    jobs = {job: None for cell in cells if not cell.is_stored(store) for job in cell.jobs()}
    return [job for job in jobs if not store.is_done(job)]


@dataclass
class Pace:
    """What a job is likely to take, from those that ran before it in this sitting."""

    plain_seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    """Of one plain training, by network and data."""

    def learn(self, job: Job, report: dict[str, Any]) -> None:
        if report["passes"]:
            seconds = report["seconds"] * report["plain_passes"] / report["passes"]
            self.plain_seconds[_kind(job)] = seconds

    def expect(self, job: Job) -> float:
        """Seconds from its beginning; 0 where nothing like it has run yet."""
        return job.share * self.plain_seconds.get(_kind(job), 0.0)


def _kind(job: Job) -> tuple[str, str]:
    return (job.case.recipe.model if job.case.recipe else "", job.case.data)


def choose_next(waiting: Sequence[Job], pace: Pace, seconds_left: float) -> Job:
    """The most valuable job that fits into the time; if none does, the most valuable one.

    That one will be stopped, and goes on the next time.
    """
    return next((job for job in waiting if pace.expect(job) <= seconds_left), waiting[0])


def conduct(cells: Sequence[Cell], conditions: Conditions, tell: Tell) -> None:
    """Train what is missing, `conditions.at_once` jobs at a time; store cells as they are done."""
    store = conditions.store
    finish_ready(cells, store, tell)
    waiting = missing_jobs(cells, store)
    for job, report in _run_all(waiting, conditions):
        where = f"{job.case.name}, {job.name}"
        if "error" in report:
            tell(f"{where}: {report['error']}")
        elif report["done"]:
            tell(f"{where}: trained in {report['seconds']:.0f} s")
        else:
            tell(f"{where}: stopped by the clock, goes on next time")
        finish_ready([cell for cell in cells if job in cell.jobs()], store, tell)


def _run_all(waiting: list[Job], conditions: Conditions) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Each job as it ends; no new one begins once the time is up."""
    pace, running = Pace(), dict[Future[dict[str, Any]], Job]()
    deadline = math.inf if conditions.deadline is None else conditions.deadline
    with _make_pool(conditions.at_once) as pool:
        while True:
            while waiting and len(running) < conditions.at_once and time.time() < deadline:
                job = choose_next(waiting, pace, deadline - time.time())
                waiting.remove(job)
                running[pool.submit(train_job, job, conditions)] = job
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                try:
                    report = future.result()
                except BrokenProcessPool:
                    raise InputError(
                        "a training process was killed, perhaps for memory; what is stored stays:"
                        " call again with fewer --jobs"
                    ) from None
                pace.learn(job, report)
                yield job, report


class _Here(Executor):
    """One job at a time needs no process of its own."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _make_pool(at_once: int) -> Executor:
    if at_once == 1:
        return _Here()
    # Spawned, since a forked process cannot use the parent's CUDA.
    return ProcessPoolExecutor(
        at_once, multiprocessing.get_context("spawn"), _prepare_process, (at_once,)
    )


def _prepare_process(at_once: int) -> None:
    """The cores are shared, and nobody trains on when the parent is gone."""
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // at_once))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
