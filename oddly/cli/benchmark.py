"""oddly benchmark: what denoising costs, and what it finds."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Annotated

import typer

from oddly.cli.app import Device, Json, app, fail, print_figures, remark, say

Model = Annotated[str | None, typer.Option(help="Network (default: resnet8; on a GPU wrn-28-10).")]

benchmark = typer.Typer(
    help="Measure what denoising costs, what it finds, and how fast all is.", no_args_is_help=True
)
app.add_typer(benchmark, name="benchmark")


@benchmark.command()
def overhead(
    device: Device = "auto",
    model: Model = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps per epoch (default: 50; on a GPU 100).")
    ] = None,
    json: Json = False,
) -> None:
    """What observing and pruning add to plain training."""
    from oddly.benchmarks.overhead import measure

    print_figures(measure(device, model, steps), json)


@benchmark.command()
def ledger(
    examples: Annotated[
        int, typer.Option(min=1, help="How many are recorded and judged.")
    ] = 100_000_000,
    json: Json = False,
) -> None:
    """One ledger update against the aum package's, and 100 million examples."""
    from oddly.benchmarks.ledger import measure

    print_figures(measure(examples), json)


@benchmark.command()
def detection(
    next_: Annotated[
        bool, typer.Option("--next", help="Train what is missing, most valuable first.")
    ] = False,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Stop after so long; call again to go on.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Trainings at a time, as processes on the same device.")
    ] = 1,
    cases: Annotated[
        list[str] | None, typer.Option(help="Only these (commas, or repeat the option).")
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option(help="Only these (commas, or repeat the option).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of noise, first weights and order.")] = 0,
    small: Annotated[bool, typer.Option("--small", help="A minute on a CPU, for tests.")] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="First remove what is stored of these cells.")
    ] = False,
    results: Annotated[
        Path | None, typer.Option(help="One JSON per cell (default: oddly/results/detection).")
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="What trainings leave (default: runs/detection).")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where the official folders lie.")] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Who finds the wrong labels: our default, the paper's rule and the rivals."""
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
        fail("stopped; call the same again to go on", 130)
    if json:
        print(json_format.dumps(found))
    else:
        for line in format_rows(found["rows"]):
            say(line)


@benchmark.command()
def methods(
    names: Annotated[str, typer.Option(help="Names with commas between (default: all).")] = "",
    epochs: Annotated[int, typer.Option(min=1)] = 8,
    repeats: Annotated[int, typer.Option(min=1, help="The best of so many counts.")] = 3,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """What each method costs beside plain training."""
    from oddly.benchmarks.methods import measure

    chosen = [name.strip() for name in names.split(",") if name.strip()]
    print_figures(measure(chosen, epochs=epochs, repeats=repeats, device=device), json)


@benchmark.command()
def throughput(
    device: Device = "auto",
    model: Model = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps per round (default: 4; on a GPU 100).")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=2)] = 128,
    compile: Annotated[
        bool | None,
        typer.Option("--compile/--no-compile", help="CUDA graphs (default: on a GPU)."),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes of the DataLoader beside it.")] = 8,
    dropout: Annotated[float, typer.Option(help="Inside the network, where it has any.")] = 0.0,
    json: Json = False,
) -> None:
    """Images per second, against a plain DataLoader and the device's own ceiling."""
    from oddly.benchmarks.throughput import measure

    figures = measure(device, model, steps, batch_size, compile, workers, dropout)
    print_figures(figures, json)


@benchmark.command()
def review(
    examples: Annotated[
        int, typer.Option(min=20_000, help="Examples of the run that is reviewed.")
    ] = 1_000_000,
    folder: Annotated[
        Path | None, typer.Option(help="Where the run is made for a while (its disk counts).")
    ] = None,
    json: Json = False,
) -> None:
    """The review page over a million examples: first page, next suspect, writes per second."""
    from oddly.benchmarks.review import measure

    print_figures(measure(examples, folder=folder), json)
