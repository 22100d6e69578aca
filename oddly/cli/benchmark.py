"""oddly benchmark: what denoising costs, and what it finds."""

from __future__ import annotations

from typing import Annotated

import typer

from oddly.cli.app import Json, app, print_figures

benchmark = typer.Typer(help="Measure what denoising costs.", no_args_is_help=True)
app.add_typer(benchmark, name="benchmark")


@benchmark.command()
def overhead(
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    model: Annotated[
        str | None, typer.Option(help="(default: resnet8; on a GPU wrn-28-10)")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Per epoch (default: 50; on a GPU 100).")
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
def throughput(
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    model: Annotated[
        str | None, typer.Option(help="(default: resnet8; on a GPU wrn-28-10)")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Per round (default: 4; on a GPU 100).")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=2)] = 128,
    compile: Annotated[
        bool | None,
        typer.Option("--compile/--no-compile", help="CUDA graphs (default: on a GPU)."),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Of the DataLoader beside it.")] = 8,
    json: Json = False,
) -> None:
    """Images per second, against a plain DataLoader and the device's own ceiling."""
    from oddly.benchmarks.throughput import measure

    print_figures(measure(device, model, steps, batch_size, compile, workers), json)
