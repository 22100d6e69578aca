"""One method with one seed: a run of its own."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from oddly.compare.plan import Plan
from oddly.data import load_data
from oddly.data.base import DataOptions, LabelledData
from oddly.engine.build import data_options
from oddly.engine.config import MACHINE, RunConfig
from oddly.engine.loop import run_config
from oddly.engine.resume import resumed_config
from oddly.engine.watch import Stopped, UntilThen, Watcher
from oddly.errors import InputError
from oddly.methods import METHODS
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

    @classmethod
    def from_name(cls, name: str) -> Cell | None:
        """The run of this folder; None if the folder is something else."""
        method, _, seed = name.rpartition("-")
        return cls(method, int(seed)) if method in METHODS and seed.isdecimal() else None


@dataclass(frozen=True)
class Report:
    """The result of training a cell, to the end or until the time was up."""

    seconds: float
    accuracy: float | None = None
    failure: str | None = None
    """Why it cannot run on this data."""
    stopped: bool = False
    """Whether the time was up; it continues next time."""

    def __str__(self) -> str:
        if self.failure:
            return self.failure
        if self.stopped:
            return "out of time, continues next time"
        tested = "" if self.accuracy is None else f"test {self.accuracy:.2f} %, "
        return f"{tested}{self.seconds:.0f} s"


def train_cell(
    cell: Cell,
    plan: Plan,
    folder: Path,
    deadline: float | None = None,
    watcher: Watcher | None = None,
) -> Report:
    """Start or continue the run, until it is done or the time is up."""
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
        raise  # not the method's fault
    except InputError as error:
        failure = str(error)
    except torch.OutOfMemoryError:
        failure = "out of memory on the device; run again with fewer --jobs or a smaller batch"
    return Report(time.time() - begun, accuracy, failure, stopped)


def train_run(cell: Cell, plan: Plan, path: Path, watcher: Watcher) -> Run:
    options = {**plan.options, "settings": dict(plan.settings.get(cell.method, {}))}
    options |= {"method": cell.method, "seed": cell.seed, "epochs": plan.epochs_of(cell.method)}
    config = RunConfig.from_options(plan.data, options)
    data = read_once(plan.data, data_options(config, watcher.reading))
    if begun := (path / "config.json").exists():
        where = {name: plan.options[name] for name in MACHINE if name in plan.options}
        config = resumed_config(path, None, where)
    return run_config(config, path, data, resume=begun, watcher=watcher)


@lru_cache(maxsize=1)
def read_once(source: str, options: DataOptions) -> LabelledData:
    """The data before noise and other changes that differ between runs; shared by all runs."""
    return load_data(source, options)
