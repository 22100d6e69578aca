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
def methods(
    names: Annotated[str, typer.Option(help="Names with commas between (default: all).")] = "",
    epochs: Annotated[int, typer.Option(min=1)] = 8,
    repeats: Annotated[int, typer.Option(min=1, help="The best of so many counts.")] = 3,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    json: Json = False,
) -> None:
    """What each method costs beside plain training."""
    from oddly.benchmarks.methods import measure

    chosen = [name.strip() for name in names.split(",") if name.strip()]
    print_figures(measure(chosen, epochs=epochs, repeats=repeats, device=device), json)
