"""Run a plan, run by run, each in a folder of its own; what is done already is not done again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oddly.compare.plan import Plan
from oddly.compare.table import make_row
from oddly.engine.api import train
from oddly.engine.build import prepare_data
from oddly.engine.config import RunConfig
from oddly.engine.watch import Watcher
from oddly.errors import InputError
from oddly.records import Run, write_json
from oddly.records.files import read_json

NAME = "compare.json"
FORMAT = 1
SEEDS = 3

Told = Callable[[str], None]


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
    seeds: int = SEEDS,
    equal_cost: bool = False,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    watcher: Watcher | None = None,
    **options: Any,
) -> Comparison:
    """Train every method with every seed and write compare.json after each run.

    `options` are fields of `RunConfig`. Called again with the same arguments it goes on where it
    stopped. A method that cannot run on this data gets a row that says why.
    """
    watcher = watcher or Watcher()
    config = RunConfig.from_options(data, options)
    recipe = prepare_data(config).recipe
    epochs = config.with_recipe(recipe).epochs
    assert epochs
    plan = Plan(data, tuple(methods), seeds, epochs, equal_cost, options, settings or {})
    for method in plan.methods:  # a misspelt setting is told before hours of training
        plan.passes(method, epochs)
    folder = open_folder(Path(out), plan)
    failures: dict[str, str] = {}
    runs: dict[str, list[Run]] = {method: [] for method in plan.methods}
    # Seeds outside, methods inside: a table of all methods is there after the first round.
    for seed in range(seeds):
        for method in plan.methods:
            if method in failures:
                continue
            try:
                runs[method].append(run_one(plan, folder, method, seed, watcher))
            except InputError as error:
                failures[method] = str(error)
                watcher.note(f"{method}: {error}")
            write_result(folder, plan, runs, failures)
    if len(failures) == len(plan.methods):
        raise InputError(f"no method could run: {next(iter(failures.values()))}")
    return Comparison(folder)


def open_folder(folder: Path, plan: Plan) -> Path:
    """The folder, new or begun with this very plan."""
    file = folder / NAME
    if file.exists():
        begun = read_json(file)["plan"]
        asked = plan.to_dict()
        differing = [name for name in asked if begun.get(name) != asked[name]]
        # More methods or seeds are welcome: what is there stays as it is.
        if set(differing) - {"methods", "seeds"}:
            name = next(name for name in differing if name not in ("methods", "seeds"))
            raise InputError(
                f"{folder} was begun with {name} = {begun.get(name)}, not {asked[name]}; choose"
                " another --out"
            )
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not empty and holds no comparison; choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run_one(plan: Plan, folder: Path, method: str, seed: int, watcher: Watcher) -> Run:
    """One run, begun, gone on with or only read."""
    path = folder / f"{method}-{seed}"
    if (path / "config.json").exists():
        run = Run(path)
        return run if run.is_done else train(out=path, resume=True, watcher=watcher)
    options = {**plan.options, "settings": dict(plan.settings.get(method, {}))}
    options |= {"method": method, "seed": seed, "epochs": plan.epochs_of(method)}
    return train(plan.data, path, watcher=watcher, **options)


def write_result(
    folder: Path, plan: Plan, runs: Mapping[str, Sequence[Run]], failures: Mapping[str, str]
) -> None:
    yardstick = runs.get("erm") or ()
    done = [method for method in plan.methods if runs[method] or method in failures]
    rows = [make_row(method, runs[method], yardstick, failures.get(method)) for method in done]
    some = next((each for each in runs.values() if each), ())
    surroundings = some[0].environment if some else {}
    result = {"format": FORMAT, "plan": plan.to_dict(), "rows": rows, "environment": surroundings}
    write_json(folder / NAME, result)
