"""oddly benchmark: what denoising costs, and what it finds."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Annotated

import typer

from oddly.cli.app import Device, Json, app, fail, print_figures, remark, say

Model = Annotated[str | None, typer.Option(help="Network (default: resnet8; wrn-28-10 on a GPU).")]

benchmark = typer.Typer(
    help="Measure what denoising costs, what it finds, and how fast it runs.", no_args_is_help=True
)
app.add_typer(benchmark, name="benchmark")


@benchmark.command()
def overhead(
    device: Device = "auto",
    model: Model = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps per epoch (default: 50; 100 on a GPU).")
    ] = None,
    json: Json = False,
) -> None:
    """Measure the time that observing and pruning add to plain training."""
    from oddly.benchmarks.overhead import measure

    print_figures(measure(device, model, steps), json)


@benchmark.command()
def ledger(
    examples: Annotated[
        int, typer.Option(min=1, help="Number of examples to record and judge.")
    ] = 100_000_000,
    json: Json = False,
) -> None:
    """Time one ledger update against the aum package, and judge 100 million examples."""
    from oddly.benchmarks.ledger import measure

    print_figures(measure(examples), json)


@benchmark.command()
def detection(
    next_: Annotated[
        bool, typer.Option("--next", help="Train what is missing, most useful first.")
    ] = False,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Time limit; run again to continue.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Number of trainings to run in parallel on the device.")
    ] = 1,
    cases: Annotated[
        list[str] | None, typer.Option(help="Only these (comma-separated, or repeat the option).")
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option(help="Only these (comma-separated, or repeat the option).")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for noise, initial weights and data order.")
    ] = 0,
    small: Annotated[
        bool, typer.Option("--small", help="Small version: a minute on a CPU.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Delete the stored results of these cells first.")
    ] = False,
    results: Annotated[
        Path | None, typer.Option(help="Folder for results (default: oddly/results/detection).")
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder for training runs (default: runs/detection).")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder that holds the official datasets.")
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Compare how well our default, the paper's rule and other methods find wrong labels."""
    from oddly.benchmarks.detection.run import measure
    from oddly.benchmarks.detection.table import format_rows

    try:
        found = measure(
            train=next_,
            minutes=minutes,
            at_once=jobs,
            cases=cases or (),
            methods=methods or (),
            seed=seed,
            small=small,
            results=results,
            work=work,
            data_dir=data_dir,
            device=device,
            forget=forget,
            tell=remark,
        )
    except KeyboardInterrupt:
        fail("interrupted; run the same command again to continue", 130)
    if json:
        print(json_format.dumps(found))
    else:
        for line in format_rows(found["rows"]):
            say(line)


@benchmark.command()
def methods(
    names: Annotated[str, typer.Option(help="Comma-separated methods (default: all).")] = "",
    epochs: Annotated[int, typer.Option(min=1)] = 8,
    repeats: Annotated[
        int, typer.Option(min=1, help="Time each method this often; the fastest counts.")
    ] = 3,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure what each method costs compared with plain training."""
    from oddly.benchmarks.methods import measure

    chosen = [name.strip() for name in names.split(",") if name.strip()]
    print_figures(measure(chosen, epochs=epochs, repeats=repeats, device=device), json)


@benchmark.command()
def throughput(
    device: Device = "auto",
    model: Model = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps per round (default: 4; 100 on a GPU).")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=2)] = 128,
    compile: Annotated[
        bool | None,
        typer.Option("--compile/--no-compile", help="Use CUDA graphs (default: on a GPU)."),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Worker processes of the DataLoader.")] = 8,
    dropout: Annotated[float, typer.Option(help="Dropout rate, if the network has dropout.")] = 0.0,
    json: Json = False,
) -> None:
    """Measure images per second against a plain DataLoader and the device's limit."""
    from oddly.benchmarks.throughput import measure

    figures = measure(device, model, steps, batch_size, compile, workers, dropout)
    print_figures(figures, json)


@benchmark.command()
def review(
    examples: Annotated[
        int, typer.Option(min=20_000, help="Number of examples in the run.")
    ] = 1_000_000,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder for the temporary run; its disk is what is measured."),
    ] = None,
    json: Json = False,
) -> None:
    """Time the review page on a million examples: first page, next suspect, writes."""
    from oddly.benchmarks.review import measure

    print_figures(measure(examples, folder=folder), json)
