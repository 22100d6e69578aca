"""The command line: parse, call one function, print."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from oddly.errors import InputError

app = typer.Typer(
    help="Train an image classifier on labels you don't trust; find the wrong ones meanwhile.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
benchmark = typer.Typer(help="Measure what denoising costs.", no_args_is_help=True)
app.add_typer(benchmark, name="benchmark")

out_console = Console()
err_console = Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON and nothing else.")]
DATA, NOISE, TRAINING, ODD, RUN = "Data", "Label noise", "Training", "Denoising", "Run"


def _show(run: Any, json: bool) -> None:
    """A finished run: its table and where to look, or its summary for a script."""
    from oddly.report import write_report
    from oddly.terminal import summary_table

    report = write_report(run)
    if json:
        print(json_format.dumps(run.summary))
        return
    out_console.print(summary_table([run]))
    out_console.print(f"run folder  {run.path}\nreport      {report}", soft_wrap=True)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Gets the run folders erm/ and odd/.")] = Path(
        "runs/demo"
    ),
    json: Json = False,
) -> None:
    """Handwritten digits with 40 % wrong labels: plain training and ODD side by side."""
    from oddly.demo import run_demo
    from oddly.report import write_report
    from oddly.terminal import TerminalWatcher, summary_table

    runs = run_demo(out, TerminalWatcher(err_console))
    report = write_report(runs[-1])
    if json:
        print(json_format.dumps({run.summary["method"]: run.summary for run in runs}))
        return
    out_console.print(summary_table(runs))
    out_console.print(f"\nreport  {report}", soft_wrap=True)


@app.command()
def train(
    data: Annotated[
        str,
        typer.Argument(
            help="digits, cifar10, cifar100, cifar10n:aggregate …, an image folder,"
            " or a CSV/Parquet table of path and label."
        ),
    ],
    method: Annotated[
        str, typer.Option(help="odd, odd_mixup, erm or mixup.", rich_help_panel=TRAINING)
    ] = "odd",
    model: Annotated[
        str | None,
        typer.Option(
            help="wrn-D-K, resnet8, resnet18, resnet20 or a timm name.", rich_help_panel=TRAINING
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(rich_help_panel=TRAINING)] = None,
    prune_after: Annotated[
        int | None,
        typer.Option(help="E: epochs before pruning [3/8 of all].", rich_help_panel=ODD),
    ] = None,
    percentile: Annotated[
        float | None,
        typer.Option(
            help="p: threshold as a percentile of the counterfactual; larger removes less [10].",
            rich_help_panel=ODD,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="paper: the paper's rule exactly.", rich_help_panel=ODD),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting of the method.", rich_help_panel=ODD
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Stop if a class would be emptied by pruning.", rich_help_panel=ODD
        ),
    ] = False,
    noise: Annotated[
        float, typer.Option(help="Share of labels to corrupt, 0..1.", rich_help_panel=NOISE)
    ] = 0.0,
    noise_kind: Annotated[
        str,
        typer.Option(
            help="uniform, uniform_other, pair, asymmetric, asymmetric_blocks or instance.",
            rich_help_panel=NOISE,
        ),
    ] = "uniform",
    data_dir: Annotated[
        str | None,
        typer.Option(help="Where the official dataset folders lie.", rich_help_panel=DATA),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Table of id and label that replaces labels.", rich_help_panel=DATA),
    ] = None,
    image_size: Annotated[
        int, typer.Option(help="Side that image files are brought to.", rich_help_panel=DATA)
    ] = 32,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch a missing dataset.", rich_help_panel=DATA)
    ] = False,
    skip_unreadable: Annotated[
        bool,
        typer.Option(
            "--skip-unreadable", help="Leave unreadable images out.", rich_help_panel=DATA
        ),
    ] = False,
    batch_size: Annotated[int | None, typer.Option(rich_help_panel=TRAINING)] = None,
    learning_rate: Annotated[float | None, typer.Option(rich_help_panel=TRAINING)] = None,
    weight_decay: Annotated[float | None, typer.Option(rich_help_panel=TRAINING)] = None,
    momentum: Annotated[float, typer.Option(rich_help_panel=TRAINING)] = 0.9,
    nesterov: Annotated[bool, typer.Option(rich_help_panel=TRAINING)] = True,
    schedule: Annotated[
        str, typer.Option(help="cosine, step or constant.", rich_help_panel=TRAINING)
    ] = "cosine",
    warmup: Annotated[
        float, typer.Option(help="Epochs of rising learning rate.", rich_help_panel=TRAINING)
    ] = 0.0,
    dropout: Annotated[float, typer.Option(rich_help_panel=TRAINING)] = 0.0,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda or mps.", rich_help_panel=RUN)
    ] = "auto",
    precision: Annotated[
        str, typer.Option(help="auto, fp32 or bf16.", rich_help_panel=RUN)
    ] = "auto",
    compile: Annotated[
        bool,
        typer.Option("--compile", help="torch.compile with CUDA graphs.", rich_help_panel=RUN),
    ] = False,
    workers: Annotated[int, typer.Option(help="Decoding processes.", rich_help_panel=RUN)] = 2,
    seed: Annotated[
        int, typer.Option(help="Noise, initialisation and order.", rich_help_panel=RUN)
    ] = 0,
    noise_seed: Annotated[int | None, typer.Option(rich_help_panel=NOISE)] = None,
    init_seed: Annotated[int | None, typer.Option(rich_help_panel=RUN)] = None,
    order_seed: Annotated[int | None, typer.Option(rich_help_panel=RUN)] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write a TensorBoard log.", rich_help_panel=RUN)
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The run folder [runs/DATA-METHOD-HASH].")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out.", rich_help_panel=RUN)
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in --out.", rich_help_panel=RUN)
    ] = False,
    json: Json = False,
) -> None:
    """Train on DATA, find its wrong labels on the way, write a run folder."""
    options = {k: v for k, v in locals().items() if k not in _NOT_OPTIONS and v is not None}
    if not strict:
        del options["strict"]  # a setting of ODD alone: named only when asked for
    options["settings"] = _parse_settings(set_ or [])
    from oddly.engine.api import train as run_training
    from oddly.terminal import TerminalWatcher

    run = run_training(data, watcher=TerminalWatcher(err_console), **options)
    _show(run, json)


_NOT_OPTIONS = ("data", "set_", "json")


def _parse_settings(pairs: list[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise InputError(f"--set takes NAME=VALUE, not '{pair}'")
    return {name.strip(): value.strip() for name, _, value in (p.partition("=") for p in pairs)}


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[Path | None, typer.Option(help="The page [RUN/report.html].")] = None,
) -> None:
    """Write a run's page: one file that opens from disk."""
    from oddly.records import Run
    from oddly.report import write_report

    out_console.print(str(write_report(Run(run), out)), soft_wrap=True)


@benchmark.command()
def overhead(json: Json = False) -> None:
    """What observing and pruning add to plain training."""
    from oddly.benchmarks.overhead import measure

    _print_figures(measure(), json)


@benchmark.command()
def ledger(json: Json = False) -> None:
    """One ledger update against the aum package's, and 100 million examples."""
    from oddly.benchmarks.ledger import measure

    _print_figures(measure(), json)


def _print_figures(figures: dict[str, Any], json: bool) -> None:
    if json:
        print(json_format.dumps(figures))
        return
    for name, value in figures.items():
        out_console.print(f"{name:<28} {value}", highlight=False)


def main() -> None:
    """The entry point: what the user got wrong is told in one line, without a traceback."""
    try:
        app()
    except InputError as error:
        _fail(str(error), 2)
    except OSError as error:
        _fail(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""), 1)


def _fail(message: str, code: int) -> None:
    err_console.print(f"oddly: {message}", markup=False, highlight=False, soft_wrap=True)
    sys.exit(code)
