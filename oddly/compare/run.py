"""Carry out a plan, run by run, each in its own folder; finished runs are not repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from oddly.compare.cell import Cell, read_once, train_cell
from oddly.compare.plan import Plan
from oddly.compare.table import make_row
from oddly.data.base import LabelledData
from oddly.engine.api import check_outside
from oddly.engine.build import check_early, data_options, prepare_data
from oddly.engine.checkpoint import fingerprint
from oddly.engine.config import MACHINE, SEEDS, RunConfig
from oddly.engine.held_out import hold_out_test
from oddly.engine.pool import run_jobs
from oddly.engine.resume import FILES, find_files, locate_file
from oddly.engine.trusted import hold_out_trusted
from oddly.engine.watch import Watcher
from oddly.errors import InputError, count, first_few
from oddly.methods import METHODS
from oddly.records import Run, write_json, writing
from oddly.records.files import read_json

NAME = "compare.json"
FORMAT = 2
DEFAULT_SEEDS = 3
HELD_OUT = 0.1  # share to hold out of data without a test set, to be able to rank methods
MOST_NAMED = 4  # runs that a table leaves out
OF_ONE_RUN = ("method", "settings", "epochs", *SEEDS)
"""Fields of a config in which the runs of a comparison differ."""


@dataclass(frozen=True)
class Comparison:
    """A folder with compare.json: the plan, and one row of figures per method so far."""

    path: Path

    @property
    def result(self) -> dict[str, Any]:
        return read_json(self.path / NAME)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(self.result["rows"])


def compare(
    data: str,
    methods: Sequence[str],
    out: str | Path,
    *,
    seeds: int = DEFAULT_SEEDS,
    equal_cost: bool = False,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    at_once: int = 1,
    deadline: float | None = None,
    watcher: Watcher | None = None,
    **options: Any,
) -> Comparison:
    """Train every method with every seed and write compare.json after each run.

    `options` are fields of `RunConfig`. Called again with the same arguments, it continues where it
    stopped. A method that cannot run on this data gets a row that says why. If the data have no
    test set, a tenth is held out, the same examples for all runs. `at_once` is the number of
    trainings in parallel, each in a process; after `deadline` (`time.time`) nothing is trained.
    """
    watcher = watcher or Watcher()
    config = RunConfig.from_options(data, options)
    check_outside(Path(out), data)
    check_early(config)
    plan = Plan(
        data, tuple(methods), seeds, config.epochs or 1, equal_cost, options, settings or {}
    )
    for method in methods:
        plan.passes(method, plan.epochs)  # fail on a misspelt setting before images are read
    try:
        plan, seen = suit_data(plan, config, watcher)
        table = Table(open_folder(Path(out), plan, seen), plan, seen, at_once)
        if seen.caveat:
            watcher.note(seen.caveat)
        with writing(table.folder):  # besides each run's own
            table.write()
            train_missing(table, deadline, watcher)
    finally:
        read_once.cache_clear()
    if len(table.failures) == len(plan.methods):
        raise InputError(f"no method could run: {next(iter(table.failures.values()))}")
    return Comparison(table.folder)


@dataclass(frozen=True)
class Seen:
    """What is known from the data."""

    fingerprint: str
    """A hash of the examples and their given labels."""
    caveat: str | None = None
    """A remark on the meaning of the figures, if needed."""


def suit_data(plan: Plan, config: RunConfig, watcher: Watcher) -> tuple[Plan, Seen]:
    """The plan completed from the data: number of epochs, and what to hold out."""
    try:
        data = read_once(plan.data, data_options(config, watcher.reading))
    finally:
        watcher.end()
    truth_known = data.true_labels is not None
    data = prepare_data(config, data)
    if data.test is None:
        plan = replace(plan, options={**plan.options, "hold_out": HELD_OUT})
        config = replace(config, hold_out=HELD_OUT)
        data = hold_out_test(data, config)
    epochs = config.with_recipe(data.recipe).epochs
    assert epochs
    plan = replace(plan, epochs=epochs)
    check_trusted(plan, config, data)
    return plan, Seen(fingerprint(data), tell_limits(config, data, truth_known))


def check_trusted(plan: Plan, config: RunConfig, data: LabelledData) -> None:
    """Fail on a bad list of trusted ids before hours of training."""
    for method in plan.methods:
        if config.trusted is not None and METHODS[method].needs_trusted_labels:
            hold_out_trusted(data, replace(config, method=method))


def tell_limits(config: RunConfig, data: LabelledData, truth_known: bool) -> str | None:
    """What the figures mean if they rest on given labels; `truth_known`: before the noise."""
    told = []
    if config.hold_out and data.test is not None:
        held_out = count(len(data.test), "held-out image")
        told.append(
            f"test accuracy is measured on the given labels of {held_out}, including wrong ones"
        )
    if config.noise and not truth_known:
        told.append(
            "precision, recall, F1 and AP take the labels before --noise for true, so finding one"
            " that was wrong already counts as a false alarm"
        )
    return "; ".join(told) or None


def open_folder(folder: Path, plan: Plan, seen: Seen) -> Path:
    """The folder, which must be new or have the same plan, examples and labels."""
    file = folder / NAME
    if file.exists():
        before = read_json(file)
        begun, asked = (_flat(each) for each in (before["plan"], plan.to_dict()))
        begun |= _files(folder, begun)
        for name in begun | asked:
            # Methods and seeds may be added: existing runs stay valid.
            if name not in ("methods", "seeds") and begun.get(name) != asked.get(name):
                raise InputError(
                    f"{folder} was started with {name} = {begun.get(name)}, not {asked.get(name)};"
                    " choose another --out"
                )
        if before.get("fingerprint", seen.fingerprint) != seen.fingerprint:
            raise InputError(
                f"{plan.data} has changed since {folder} was started: other examples or given"
                " labels; choose another --out"
            )
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not empty and not a comparison; choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _files(folder: Path, begun: Mapping[str, Any]) -> dict[str, Any]:
    """The real paths of the plan's files; a run knows what relative paths start from."""
    for file in folder.glob("*/config.json"):
        there = find_files(Run(file.parent))  # any run, since all have the same files
        return {name: locate_file(getattr(there, name)) for name in FILES if name in begun}
    return {}


def _flat(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A plan as one level of names and values, without options for where it runs."""
    settings = {
        f"{method}.{name}": value
        for method, each in plan["settings"].items()
        for name, value in each.items()
    }
    top = {name: value for name, value in plan.items() if name not in ("options", "settings")}
    flat = {**top, **plan["options"], **settings}
    return {
        name: locate_file(value) if name in FILES else value
        for name, value in flat.items()
        if name not in MACHINE
    }


def train_missing(table: Table, deadline: float | None, watcher: Watcher) -> None:
    """Train all missing runs, `table.at_once` at a time, or as many as there is time for."""
    waiting = [cell for cell in table.cells() if not table.is_done(cell)]
    total, alone = len(waiting), table.at_once == 1
    work = partial(train_cell, plan=table.plan, folder=table.folder, deadline=deadline)
    if alone:  # a progress bar cannot travel to another process
        work = partial(work, watcher=watcher)
    else:  # nor can images: each process reads its own, once
        read_once.cache_clear()
    ends = run_jobs(waiting, work, table.at_once, deadline, table.expect)
    for number, (cell, report) in enumerate(ends, 1):
        if report.failure:
            table.failures[cell.method] = report.failure
            waiting[:] = [each for each in waiting if each.method != cell.method]
        if not alone or report.failure:
            watcher.note(f"{cell.name}: {report} ({number} of {total})")
        table.write()


class Table:
    """The results in the folder so far, as a table."""

    def __init__(self, folder: Path, plan: Plan, seen: Seen, at_once: int = 1) -> None:
        self.folder, self.plan, self.seen, self.at_once = folder, plan, seen, at_once
        self.failures: dict[str, str] = {}
        self.pace = 0.0  # seconds per pass over the data

    def cells(self) -> list[Cell]:
        """All cells, seed by seed, so that all methods are in the table after the first seed."""
        return [Cell(m, seed) for seed in range(self.plan.seeds) for m in self.plan.methods]

    def is_done(self, cell: Cell) -> bool:
        return (self.folder / cell.name / "done").exists()

    def expect(self, cell: Cell) -> float:
        """Estimated seconds of a run, from finished ones; 0 before the first."""
        plan = self.plan
        return self.pace * plan.passes(cell.method, plan.epochs_of(cell.method))

    def tell_left_out(self) -> str | None:
        """Which finished runs in the folder are not in the plan, and how to see them too."""
        there = [Cell.from_name(file.parent.name) for file in self.folder.glob("*/done")]
        left = sorted({cell for cell in there if cell} - set(self.cells()), key=lambda c: c.name)
        if not left:
            return None
        methods = dict.fromkeys([*self.plan.methods, *(cell.method for cell in left)])
        seeds = max(self.plan.seeds, *(cell.seed + 1 for cell in left))
        named = first_few([cell.name for cell in left], MOST_NAMED)
        return (
            f"this folder also holds finished runs that are not shown ({named}); to see them too,"
            f" use --methods {','.join(methods)} --seeds {seeds}"
        )

    def write(self) -> None:
        """Write compare.json from the run folders."""
        runs: dict[str, list[Run]] = {method: [] for method in self.plan.methods}
        for cell in self.cells():
            if self.is_done(cell):
                runs[cell.method].append(Run(self.folder / cell.name))
        done = [run.summary for each in runs.values() for run in each]
        passes = sum(summary["passes"] for summary in done)
        self.pace = sum(summary["seconds"] for summary in done) / max(passes, 1)
        there = [m for m in self.plan.methods if runs[m] or m in self.failures]
        rows = [make_row(m, runs[m], runs.get("erm", ()), self.failures.get(m)) for m in there]
        missing = [cell for cell in self.cells() if not self.is_done(cell)]
        some = next((each[0] for each in runs.values() if each), None)
        result = {
            "format": FORMAT,
            "plan": self.plan.to_dict(),
            "training": _common(some.config) if some else {},
            "fingerprint": self.seen.fingerprint,
            "caveat": self.seen.caveat,
            "left_out": self.tell_left_out(),
            "rows": rows,
            "missing": sum(cell.method not in self.failures for cell in missing),
            "at_once": self.at_once,
            "environment": some.environment if some else {},
        }
        write_json(self.folder / NAME, result)


def _common(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that all runs share, including defaults."""
    own = {"format", *MACHINE, *OF_ONE_RUN}
    return {name: value for name, value in config.items() if name not in own}
