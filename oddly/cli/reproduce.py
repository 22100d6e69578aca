"""oddly reproduce: the paper's tables and figures, ours beside theirs."""

from __future__ import annotations

import json as json_format
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oddly.cli.app import (
    Device,
    Json,
    app,
    err_console,
    fail,
    out_console,
    print_table,
    remark,
    say,
)
from oddly.errors import InputError, unknown_name

if TYPE_CHECKING:
    from oddly.experiments.base import Cell, Drawing, Experiment, Filled
    from oddly.experiments.results import Store
    from oddly.experiments.sizes import Size


@app.command()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="table1, figure3, … (see --list).")
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List all names with their cost and progress.")
    ] = False,
    run: Annotated[bool, typer.Option("--run", help="Train everything that is missing.")] = False,
    next_: Annotated[
        bool, typer.Option("--next", help="Train what comes next, for up to --minutes.")
    ] = False,
    minutes: Annotated[
        float,
        typer.Option(min=0.1, help="Time limit for --next; you can interrupt it at any time."),
    ] = 25.0,
    small: Annotated[
        bool, typer.Option("--small", help="Small network on two CPU cores, takes seconds.")
    ] = False,
    fast: Annotated[
        bool, typer.Option("--fast", help="ResNet-9 on one GPU, under a minute per run.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="The paper's settings (default).")] = False,
    row: Annotated[list[str] | None, typer.Option(help="Only these rows; repeatable.")] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="Only these columns; repeatable.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds (default: 3; 1 with --small).")
    ] = None,
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="NAME=VALUE",
            help="Change the recipe; these runs are stored separately.",
        ),
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option(help="Folder that holds the official datasets.")
    ] = None,
    skip_unreadable: Annotated[
        bool,
        typer.Option(
            "--skip-unreadable", help="Leave out missing images; these runs are stored separately."
        ),
    ] = False,
    results: Annotated[
        Path | None, typer.Option(help="Folder for new results (default: the package's own).")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder for runs; it gets large.")] = Path(
        "runs/reproduce"
    ),
    out: Annotated[Path | None, typer.Option(help="Folder for the figures.")] = None,
    page: Annotated[
        Path | None, typer.Option(help="Only update the tables of this Markdown page.")
    ] = None,
    device: Device = "auto",
    compile: Annotated[
        bool | None,
        typer.Option(
            "--compile/--no-compile", help="Use CUDA graphs (default: for long runs on a GPU)."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes that decode images (default: 2).")
    ] = None,
    json: Json = False,
) -> None:
    """Print the paper's tables and figures from stored runs, and train the missing runs."""
    from oddly.experiments import EXPERIMENTS
    from oddly.experiments.base import Drawing, fill
    from oddly.experiments.results import STORED, Store

    seeds = seeds or (1 if small else 3)
    # Results of --small are not stored with the package's own.
    store = Store(results or (runs / "results" if small else STORED))
    if page:
        from oddly.experiments.pages import refresh

        refresh(page, EXPERIMENTS, store)
        return
    if list_:
        chosen = _size_name(small, fast, full)
        _print_list(list(EXPERIMENTS.values()), chosen, seeds, store, json)
        return
    if name is None:
        raise InputError("name a table or figure: oddly reproduce NAME (--list shows all names)")
    if name not in EXPERIMENTS:
        raise unknown_name("table or figure", name, EXPERIMENTS)
    experiment = EXPERIMENTS[name]
    size = _choose_size(experiment, _size_name(small, fast, full), with_ or [], skip_unreadable)
    cells = _select(experiment.cells(size, seeds), row, column)
    if run or next_:
        where = _say_where(size, data_dir, device, compile, workers)
        _train(cells, size, store, runs, where, None if run else minutes)
    _print(experiment, size, fill(cells, store), json)
    if out:
        _draw(experiment, Drawing(store, size, seeds, out, Path(data_dir) if data_dir else None))


def _draw(experiment: Experiment, drawing: Drawing) -> None:
    if experiment.draw is None:
        remark(f"{experiment.name} has no figure to draw")
        return
    paths = experiment.draw(drawing)
    for path in paths:
        remark(f"wrote  {path}")
    if not paths:
        remark("no figure written: its runs are missing")


def _say_where(
    size: Size, data_dir: str | None, device: str, compile: bool | None, workers: int | None
) -> dict[str, Any]:
    """Options for where and how fast a run trains, not for what it learns."""
    from oddly.engine.build import choose_device

    if compile is None:
        compile = size.compile and choose_device(device).type == "cuda"
    given = {"data_dir": data_dir, "device": device, "compile": compile, "workers": workers}
    return {name: value for name, value in given.items() if value is not None}


def _print(experiment: Experiment, size: Size, filled: Sequence[Filled], json: bool) -> None:
    if json:
        print(json_format.dumps({"cells": [cell.to_dict() for cell in filled]}))
        return
    say(f"{experiment.name}: {experiment.title} ({size.name}, {experiment.unit})")
    print_table(_table(experiment, filled))
    if size.name == "small":
        say("small: only shows that the code runs; the numbers mean nothing")
    if experiment.about:
        say(experiment.about)


def _size_name(small: bool, fast: bool, full: bool) -> str:
    chosen = [name for name, wanted in (("small", small), ("fast", fast), ("full", full)) if wanted]
    if len(chosen) > 1:
        raise InputError(f"--{chosen[0]} and --{chosen[1]} cannot be used together")
    return chosen[0] if chosen else "full"


def _choose_size(experiment: Experiment, name: str, changes: Sequence[str], skip: bool) -> Size:
    from oddly.cli.train import parse_settings

    if name not in experiment.sizes:
        known = " or ".join(f"--{size}" for size in experiment.sizes)
        raise InputError(f"{experiment.name} has no --{name}; use {known}")
    size = experiment.sizes[name]
    if skip and not size.decodes_files:
        raise InputError(f"--skip-unreadable is for image files; {experiment.name} reads none")
    changes = [*changes, "skip_unreadable=true"] if skip else list(changes)
    return size.changed(parse_settings(changes, "--with")) if changes else size


def _select(
    cells: Sequence[Cell], rows: Sequence[str] | None, columns: Sequence[str] | None
) -> list[Cell]:
    for kind, wanted in (("row", rows), ("column", columns)):
        known = {getattr(cell, kind) for cell in cells}
        for name in wanted or ():
            if name not in known:
                raise unknown_name(kind, name, known)
    chosen = [
        cell
        for cell in cells
        if (not rows or cell.row in rows) and (not columns or cell.column in columns)
    ]
    if not chosen:
        raise InputError("the chosen rows and columns have no cell in common")
    return chosen


def _train(
    cells: Sequence[Cell],
    size: Size,
    store: Store,
    runs: Path,
    where: dict[str, Any],
    minutes: float | None,
) -> None:
    from oddly.experiments.base import missing_jobs
    from oddly.experiments.runner import Runner
    from oddly.terminal import TerminalWatcher

    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    watcher = TerminalWatcher(err_console)
    runner = Runner(store, size, runs, where, deadline, watcher, tell=remark)
    jobs = missing_jobs(cells, store)
    if not jobs:
        remark("nothing left to train")
        return
    try:
        finished = runner.run(jobs)
    except KeyboardInterrupt:
        fail("interrupted; run the same command again to continue from the last checkpoint", 130)
    remark(f"{len(finished)} of {len(jobs)} missing trainings finished")


def _table(experiment: Experiment, filled: Sequence[Filled]) -> Any:
    """One cell per row and column: ours above the paper's."""
    from rich import box
    from rich.table import Table

    from oddly.experiments.pages import arrange

    rows, columns = arrange(filled)
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    by_place = {(cell.row, cell.column): cell for cell in filled}
    printed = any(cell.paper for cell in filled)
    for row in rows:
        texts = [_cell_text(by_place.get((row, c)), experiment.digits, printed) for c in columns]
        table.add_row(row, *texts)
    return table


def _cell_text(cell: Filled | None, digits: int, printed: bool) -> str:
    """Our number, and below it the paper's if it prints any."""
    if cell is None:
        return ""
    from oddly.experiments.pages import ours_text

    ours = ours_text(cell, digits)
    ours = ours if cell.ours is None else f"[bold]{ours}[/]"
    return f"{ours}\n[dim]{cell.paper or '–'}[/]" if printed else ours


def _print_list(
    experiments: Sequence[Experiment], size: str, seeds: int, store: Store, json: bool
) -> None:
    from rich.table import Table

    from oddly.experiments.base import fill

    states: list[dict[str, Any]] = []
    for experiment in experiments:
        if size not in experiment.sizes:
            continue
        cells = experiment.cells(experiment.sizes[size], seeds)
        stored = sum(bool(cell.values) for cell in fill(cells, store))
        cost = experiment.cost_of(experiment.sizes[size], cells)
        row = {"name": experiment.name, "title": experiment.title, "cost": cost}
        states.append(row | {"stored": stored, "cells": len(cells)})
    if json:
        print(json_format.dumps({"experiments": states}))
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for header in ("name", "title", "total cost", "stored"):
        table.add_column(header)
    for row in states:
        told = f"{row['stored']} of {row['cells']}"
        table.add_row(row["name"], row["title"], row["cost"], told)
    out_console.print(table)
