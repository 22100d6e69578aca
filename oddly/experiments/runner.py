"""Train what is missing, trunk by trunk, within the time given; a killed run goes on next time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from oddly.data.base import LabelledData
from oddly.engine.build import prepare_data
from oddly.engine.checkpoint import CannotGoOn, Fork, milestone_path
from oddly.engine.config import SEEDS, RunConfig
from oddly.engine.loop import run_config
from oddly.engine.watch import Stopped, UntilThen, Watcher
from oddly.errors import InputError
from oddly.experiments.base import FROM_RUN, Job
from oddly.experiments.elsewhere import check_there, try_on
from oddly.experiments.estimate import Estimator
from oddly.experiments.results import Store, identity, run_name
from oddly.experiments.sizes import Size
from oddly.experiments.snapshot import look
from oddly.records import FolderBusy, Run

COMMON = {"data", "noise", "noise_kind", "method", "settings", "weights", *SEEDS}
SPARE_SECONDS = 15.0  # reserved for what follows the last epoch


class OutOfTime(Exception):
    """The time is up; the current training is saved and continues next time."""


@dataclass
class Runner:
    """Runs trainings and stores their results."""

    store: Store
    size: Size
    runs: Path
    """Folder for one run folder per training; large, and can be deleted."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Options that do not affect results: data_dir, device, compile, workers."""
    deadline: float | None = None
    """On the clock `time.monotonic`."""
    watcher: Watcher = field(default_factory=Watcher)
    tell: Callable[[str], None] = print
    _loaded: dict[str, LabelledData | None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.size.make:  # even if a folder is given: the real data would take days
            self.where = {**self.where, "data_dir": str(self.runs / "made")}
            self.size.make(self.runs / "made")

    def run(self, jobs: Sequence[Job]) -> list[Job]:
        """Train all jobs, or as many as fit into the time; returns the finished ones.

        Two processes can run at once; each skips what the other is training.
        """
        self.store.check_writable()  # now, not after hours of training
        left, finished = list(jobs), list[Job]()
        while left:
            job = self.choose(left, begin_anyhow=not finished)
            if job is None:
                self.tell(f"out of time for another run; next: {self.describe(left[0])}")
                break
            left.remove(job)
            if job.is_stored(self.store.find(job.config)):
                continue  # another process has finished it in the meantime
            forks = {j.fork_epoch for j in jobs if j.trunk and _same(j.trunk, job)}
            try:
                self.train(job, forks - {0})
            except OutOfTime:
                self.tell("out of time; run the same command again to continue from here")
                break
            except FolderBusy:
                self.tell("skipped: another process is training this run or the one it builds on")
                continue
            except CannotGoOn as error:
                raise InputError(f"{error.why}; remove {error.folder} and run again") from None
            finished.append(job)
        return finished

    def seconds_left(self) -> float:
        if self.deadline is None:
            return math.inf
        return self.deadline - time.monotonic() - SPARE_SECONDS

    def choose(self, jobs: Sequence[Job], begin_anyhow: bool = True) -> Job | None:
        """The first job that fits into the time left.

        If none does and nothing else was done, the first job: it can be stopped and continues next
        time.
        """
        if self.deadline is None:
            return jobs[0]
        left = self.deadline - time.monotonic()
        if fitting := next((job for job in jobs if self.estimate(job) <= left), None):
            return fitting
        if not begin_anyhow:
            return None
        self.tell(f"no run fits in {left / 60:.0f} min; starting {self.describe(jobs[0])}")
        return jobs[0]

    def describe(self, job: Job) -> str:
        """A job in a line, and how long it will take."""
        return (
            f"{describe(job.config, self.size, job.until)}, about {self.estimate(job) / 60:.0f} min"
        )

    def train(self, job: Job, forks: Collection[int] = ()) -> Path:
        """Train one job, its trunk first; returns the file of the stored result."""
        if job.also_test:
            check_there(self.located(job.config), job.also_test)
        if job.after:
            self.train(job.after)
        fork = None
        if job.trunk and job.fork_epoch:
            siblings = {job.fork_epoch, *forks}
            fork = Fork(self.grow_trunk(job.trunk, job.fork_epoch, siblings), job.fork_epoch)
        begun = time.monotonic()
        folder, looks = self.choose_folder(job)
        try:
            self.go_on(job.config, folder, job.until, {*looks, *forks}, fork)
        except OutOfTime:
            self.keep_looks(job.config, folder, looks)
            raise
        looked = self.look(job.config, folder, looks)
        for epoch in looked.keys() - set(forks):
            milestone_path(folder, epoch).unlink()
        origin = None
        if fork and job.trunk:
            origin = {"run": run_name(job.trunk), "epochs": fork.epoch}
        also = self.test_elsewhere(job, folder)
        path = self.store.save(job.config, Run(folder), looked, origin, also)
        self.tell(f"stored {path.name} ({time.monotonic() - begun:.0f} s)")
        return path

    def choose_folder(self, job: Job) -> tuple[Path, set[int]]:
        """The folder to train in, and the epochs at which to look at the losses.

        This is usually the job's own folder. If an existing run is already past an epoch that is
        wanted now, it is trained again up to there, in another folder.
        """
        folder = self.folder(job.config)
        stored = self.store.find(job.config)
        wanted = {e for e in job.snapshots if not stored or str(e) not in stored.snapshots}
        passed = finished_epochs(folder)
        if any(e <= passed and not milestone_path(folder, e).exists() for e in wanted):
            return folder.with_name(f"{folder.name}-looks"), wanted
        return folder, wanted | (set(self.size.looks) if is_trunk(job.config) else set())

    def look(
        self, config: RunConfig, folder: Path, epochs: Collection[int]
    ) -> dict[int, dict[str, Any]]:
        """Numbers about the losses at those epochs for which the run has a milestone."""
        there = sorted(e for e in epochs if milestone_path(folder, e).exists())
        if not there:
            return {}
        located, at = self.located(config), self.size.prune_after
        data = prepare_data(located, self.load(config))
        return {e: look(folder, e, data, located, decisive=e == at) for e in there}

    def keep_looks(self, config: RunConfig, folder: Path, epochs: Collection[int]) -> None:
        """Store the snapshots of an unfinished run, from which figures can be made."""
        stored = self.store.find(config)
        new = {e for e in epochs if not stored or str(e) not in stored.snapshots}
        if looked := self.look(config, folder, new):
            path = self.store.save(config, Run(folder), looked)
            self.tell(f"stored {path.name}, unfinished: losses after epochs {sorted(looked)}")

    def grow_trunk(self, trunk: RunConfig, epoch: int, siblings: Collection[int]) -> Path:
        """The folder of a trunk with this milestone, which is trained up to there if necessary."""
        folder, looks = self.folder(trunk), self.size.looks
        if not milestone_path(folder, epoch).exists() and finished_epochs(folder) >= epoch:
            folder = folder.with_name(f"{folder.name}-to-{epoch}")  # it is past it, without one
        if not milestone_path(folder, epoch).exists():
            # Forks start one epoch before E; one more epoch shows the losses at E itself.
            until = epoch + (epoch + 1 in looks)
            try:
                self.go_on(trunk, folder, until, {*siblings, *looks}, None)
            except OutOfTime:
                self.keep_looks(trunk, folder, looks)
                raise
            self.keep_looks(trunk, folder, looks)
        return folder

    def go_on(
        self,
        config: RunConfig,
        folder: Path,
        until: int | None,
        milestones: Collection[int],
        fork: Fork | None,
    ) -> None:
        """Start or continue the run, and train until epoch `until`."""
        begun = (folder / "config.json").exists()
        if begun and (Run(folder).is_done or (until and finished_epochs(folder) >= until)):
            return
        self.tell(describe(config, self.size, until))
        watcher = UntilThen(self.watcher, self.seconds_left, until)
        data = self.load(config)
        try:
            run_config(
                self.located(config),
                folder,
                data,
                resume=begun,
                watcher=watcher,
                milestones=milestones,
                fork=fork,
            )
        except Stopped:
            if watcher.out_of_time:
                raise OutOfTime from None

    def estimate(self, job: Job) -> float:
        """Estimated seconds that the job still takes, including its trunk."""
        estimator = Estimator(self.store, self.where)
        size, done = self.size, finished_epochs(self.folder(job.config))
        seconds = self.estimate(job.after) if job.after else 0.0
        if job.trunk and not done:
            done, trunk = job.fork_epoch, self.folder(job.trunk)
            if not milestone_path(trunk, done).exists():
                grown = finished_epochs(trunk)
                grown = 0 if grown >= done else grown  # past it, so trained again
                seconds += estimator.seconds(job.trunk, size.examples, grown, done)
        until = job.until or job.config.epochs or size.epochs  # a row may have its own epochs
        return seconds + estimator.seconds(job.config, size.examples, done, until)

    def folder(self, config: RunConfig) -> Path:
        return self.runs / run_name(config)

    def test_elsewhere(self, job: Job, folder: Path) -> dict[str, dict[str, float]]:
        """Test the finished network on another test set, if the job asks for it."""
        if job.also_test is None or not Run(folder).is_done:
            return {}
        return {job.also_test: try_on(self.located(job.config), folder)}

    def located(self, config: RunConfig) -> RunConfig:
        """The config with `where`, and with weights of an earlier run as a path."""
        config = replace(config, **self.where)
        if config.weights and config.weights.startswith(FROM_RUN):
            source = self.runs / config.weights.removeprefix(FROM_RUN) / "model.safetensors"
            config = replace(config, weights=str(source))
        return config

    def load(self, config: RunConfig) -> LabelledData | None:
        """The data without noise, kept in memory for the next run."""
        if config.data not in self._loaded:
            data_dir = self.where.get("data_dir")
            data = self.size.load(config.data, Path(data_dir) if data_dir else None)
            self._loaded = {config.data: data}
        return self._loaded[config.data]


def describe(config: RunConfig, size: Size, until: int | None = None) -> str:
    """A training in one line: method, data, and what differs from the size's defaults."""
    rate = f"{100 * config.noise:g} % {config.noise_kind}" if config.noise else "no"
    words = [f"{config.method} on {config.data}", f"{rate} noise", f"seed {config.order_seed}"]
    told = {"E": config.settings.get("prune_after"), "p": config.settings.get("percentile")}
    if is_trunk(config):
        words[0] = f"plain training on {config.data}"
    else:
        words += [f"{name} = {value:g}" for name, value in told.items() if value is not None]
    for name, value in identity(config).items():
        if name not in COMMON and value != size.options.get(name):
            words.append(f"{name.replace('_', ' ')} {value}")
    return ", ".join(words) + ("" if until is None else f", to epoch {until}")


def finished_epochs(folder: Path) -> int:
    return len(Run(folder).metrics) if (folder / "config.json").exists() else 0


def is_trunk(config: RunConfig) -> bool:
    """Whether it is a trunk: ODD that prunes only at the end, so that losses are stored."""
    return config.method == "odd" and config.settings.get("prune_after") == config.epochs


def _same(trunk: RunConfig, job: Job) -> bool:
    """Whether the job is this trunk or forks from it."""
    return identity(trunk) in (identity(job.config), job.trunk and identity(job.trunk))
