"""oddly benchmark: what denoising costs, and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oddly.cli.app import Json, app, print_figures

benchmark = typer.Typer(
    help="Measure what denoising costs, and how fast the review is.", no_args_is_help=True
)
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
def review(
    examples: Annotated[
        int, typer.Option(min=20_000, help="Of the run that is reviewed.")
    ] = 1_000_000,
    folder: Annotated[
        Path | None, typer.Option(help="Where the run is made for a while (its disk counts).")
    ] = None,
    json: Json = False,
) -> None:
    """The review page over a million examples: first page, next suspect, writes per second."""
    from oddly.benchmarks.review import measure

    print_figures(measure(examples, folder=folder), json)
