"""oddly compare: several methods on the same data, side by side."""

from __future__ import annotations

import json as json_format
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oddly.cli.app import (
    DEVICES,
    Json,
    app,
    describe,
    err_console,
    fail,
    given_options,
    in_panel,
    print_table,
    say,
)
from oddly.errors import InputError, count

if TYPE_CHECKING:
    from oddly.compare import Comparison

DATA, NOISE, TRAINING, RUN = "Data", "Label noise", "Training", "Run"
GO_ON = "run the same command again to continue"
OF_THE_COMMAND = (
    *("data", "methods", "out", "seeds", "equal_cost", "jobs", "minutes", "set_", "json"),
)


@app.command()
def compare(
    context: typer.Context,
    data: Annotated[str, typer.Argument(metavar="DATA", help="Dataset; see oddly train.")],
    methods: Annotated[
        str, typer.Option(help="Comma-separated methods, or all.", metavar="A,B,…")
    ] = "erm,odd",
    out: Annotated[
        Path | None, typer.Option(help="Folder to write or continue (default: runs/compare-DATA).")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds per method.")] = 3,
    equal_cost: Annotated[
        bool,
        typer.Option(
            "--equal-cost", help="Give each method the same number of passes, not of epochs."
        ),
    ] = False,
    jobs: Annotated[
        int, typer.Option(min=1, help="Number of trainings to run in parallel on the device.")
    ] = 1,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Time limit; run again to continue.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="METHOD.NAME=VALUE", help="Setting of a method; repeatable."),
    ] = None,
    json: Json = False,
    data_dir: Annotated[str | None, in_panel(DATA, "Folder that holds the datasets.")] = None,
    image_size: Annotated[int, in_panel(DATA, "Side to resize image files to.")] = 32,
    labels: Annotated[str | None, in_panel(DATA, "See oddly train.", metavar="FILE")] = None,
    download: Annotated[bool, in_panel(DATA, "See oddly train.", "--download")] = False,
    skip_unreadable: Annotated[
        bool, in_panel(DATA, "See oddly train.", "--skip-unreadable")
    ] = False,
    trusted: Annotated[
        str | None,
        in_panel(
            DATA, "Trusted labels, for methods that need them; see oddly train.", metavar="N|FILE"
        ),
    ] = None,
    noise: Annotated[float, in_panel(NOISE, "Share of labels to corrupt, 0..1.")] = 0.0,
    noise_kind: Annotated[str, in_panel(NOISE, "See oddly train.")] = "uniform",
    model: Annotated[str | None, in_panel(TRAINING, "See oddly train.")] = None,
    epochs: Annotated[int | None, in_panel(TRAINING, "See oddly train.")] = None,
    batch_size: Annotated[int | None, in_panel(TRAINING, "See oddly train.")] = None,
    learning_rate: Annotated[float | None, in_panel(TRAINING, "See oddly train.")] = None,
    weight_decay: Annotated[float | None, in_panel(TRAINING, "See oddly train.")] = None,
    schedule: Annotated[str, in_panel(TRAINING, "See oddly train.")] = "cosine",
    warmup: Annotated[float, in_panel(TRAINING, "See oddly train.")] = 0.0,
    cutout: Annotated[int, in_panel(DATA, "See oddly train.")] = 0,
    device: Annotated[str, in_panel(RUN, DEVICES)] = "auto",
) -> None:
    """Train several methods on DATA with the same model, noise and seeds, and compare them."""
    from oddly.compare import compare as run_comparison
    from oddly.compare import write_page
    from oddly.engine.whereabouts import name_after
    from oddly.methods import METHODS
    from oddly.terminal import TerminalWatcher

    names = list(METHODS) if methods == "all" else [m.strip() for m in methods.split(",") if m]
    folder = out or Path("runs") / f"compare-{name_after(data)}"
    try:
        done = run_comparison(
            data,
            names,
            folder,
            seeds=seeds,
            equal_cost=equal_cost,
            settings=_parse(set_ or []),
            at_once=jobs,
            deadline=None if minutes is None else time.time() + 60 * minutes,
            watcher=TerminalWatcher(err_console),
            **given_options(context, OF_THE_COMMAND),
        )
    except KeyboardInterrupt:
        fail(f"interrupted; {GO_ON}", 130)
    except OSError as error:
        fail(f"{describe(error, folder)}; {GO_ON}", 1)
    page = write_page(done)
    if json:
        print(json_format.dumps(done.result))
        return
    _print(done)
    say(f"folder  {done.path}", f"page    {page}")


def _print(done: Comparison) -> None:
    from rich.table import Table

    from oddly.compare import lines_of

    table = Table(box=None, header_style="bold", pad_edge=False)
    columns, *lines = lines_of(done.rows)
    for name in columns:
        table.add_column(name, justify="left" if name == "method" else "right", no_wrap=True)
    for line in lines:
        table.add_row(*line)
    if lines:
        print_table(table)
    if lines and (caveat := done.result["caveat"]):
        say(caveat)
    for row in done.rows:
        for told in (row["failure"], row["doubt"]):
            if told:
                say(f"{row['method']}: {told}")
    if left_out := done.result["left_out"]:
        say(left_out)
    if missing := done.result["missing"]:
        say(f"{count(missing, 'run')} missing; {GO_ON}")


def _parse(pairs: list[str]) -> dict[str, dict[str, Any]]:
    settings: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        method, dot, setting = name.strip().partition(".")
        if not equals or not dot:
            raise InputError(f"--set expects METHOD.NAME=VALUE, got '{pair}'")
        settings.setdefault(method, {})[setting] = value.strip()
    return settings
