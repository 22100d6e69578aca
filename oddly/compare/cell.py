"""One method with one seed: a run of its own."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from oddly.compare.plan import Plan
from oddly.engine.api import train
from oddly.engine.config import MACHINE
from oddly.engine.watch import Stopped, UntilThen, Watcher
from oddly.errors import InputError
from oddly.records import FolderBusy, Run


@dataclass(frozen=True)
class Cell:
    """One run of a comparison."""

    method: str
    seed: int

    @property
    def name(self) -> str:
        """Of its run folder."""
        return f"{self.method}-{self.seed}"


@dataclass(frozen=True)
class Report:
    """How a sitting with a cell ended."""

    seconds: float
    accuracy: float | None = None
    failure: str | None = None
    """Why it cannot run on this data."""
    stopped: bool = False
    """By the clock; it goes on the next time."""

    def __str__(self) -> str:
        if self.failure:
            return self.failure
        if self.stopped:
            return "stopped by the clock, goes on next time"
        tested = "" if self.accuracy is None else f"test {self.accuracy:.2f} %, "
        return f"{tested}{self.seconds:.0f} s"


def train_cell(
    cell: Cell,
    plan: Plan,
    folder: Path,
    deadline: float | None = None,
    watcher: Watcher | None = None,
) -> Report:
    """Begin the run or go on with it, until it is done or the time is up."""
    begun = time.time()

    def seconds_left() -> float:
        return math.inf if deadline is None else deadline - time.time()

    timed = UntilThen(watcher or Watcher(), seconds_left)
    accuracy = failure = None
    stopped = False
    try:
        accuracy = train_run(cell, plan, folder / cell.name, timed).summary["test_accuracy"]
    except Stopped:
        stopped = True
    except FolderBusy:
        raise  # no fault of the method's
    except InputError as error:
        failure = str(error)
    except torch.OutOfMemoryError:
        failure = "the device's memory is full; call again with fewer --jobs or a smaller batch"
    return Report(time.time() - begun, accuracy, failure, stopped)


def train_run(cell: Cell, plan: Plan, path: Path, watcher: Watcher) -> Run:
    if (path / "config.json").exists():
        where = {name: plan.options[name] for name in MACHINE if name in plan.options}
        return train(out=path, resume=True, watcher=watcher, **where)
    options = {**plan.options, "settings": dict(plan.settings.get(cell.method, {}))}
    options |= {"method": cell.method, "seed": cell.seed, "epochs": plan.epochs_of(cell.method)}
    return train(plan.data, path, watcher=watcher, **options)
