"""The command line: parse, call one function, print."""

from __future__ import annotations

import json as json_format
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

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


def _in(panel: str, help: str | None = None, flag: str | None = None, **more: Any) -> Any:
    """An option under a heading of --help; `flag` where it is not the parameter's name."""
    names = [flag] if flag else []
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


SUITS = "(default: what suits the data)"
SOURCES = (
    "digits, cifar10, cifar100, cifar10n:aggregate …, an image folder, or a CSV/Parquet table of"
    " path and label. Not needed with --resume."
)
NETWORKS = f"wrn-D-K, resnet8, resnet18, resnet20 or a timm name {SUITS}."
NOISES = "uniform, uniform_other, pair, asymmetric, asymmetric_blocks or instance."
PERCENTILE = (
    "p, 0..100: percentile of the counterfactual that is the threshold; larger removes less."
)


@app.command()
def train(
    context: typer.Context,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=SOURCES)] = None,
    out: Annotated[Path | None, _in(RUN, "Run folder (default: runs/DATA-METHOD-HASH).")] = None,
    resume: Annotated[bool, _in(RUN, "Go on with the run in --out.", "--resume")] = False,
    overwrite: Annotated[bool, _in(RUN, "Replace the run in --out.", "--overwrite")] = False,
    seed: Annotated[int, _in(RUN, "Of noise, initialisation and order.")] = 0,
    init_seed: Annotated[int | None, _in(RUN, "Of the first weights alone.")] = None,
    order_seed: Annotated[int | None, _in(RUN, "Of order, augmentation and draws alone.")] = None,
    device: Annotated[str, _in(RUN, "auto, cpu, cuda or mps.")] = "auto",
    precision: Annotated[str, _in(RUN, "auto, fp32 or bf16.")] = "auto",
    compile: Annotated[bool, _in(RUN, "torch.compile with CUDA graphs.", "--compile")] = False,
    workers: Annotated[int, _in(RUN, "Processes that decode images.")] = 2,
    tensorboard: Annotated[bool, _in(RUN, "Write a TensorBoard log.", "--tensorboard")] = False,
    json: Json = False,
    data_dir: Annotated[str | None, _in(DATA, "Where the official dataset folders lie.")] = None,
    labels: Annotated[str | None, _in(DATA, "Table of id and label that replaces labels.")] = None,
    image_size: Annotated[int, _in(DATA, "Side that image files are brought to.")] = 32,
    download: Annotated[bool, _in(DATA, "Fetch a missing dataset.", "--download")] = False,
    skip_unreadable: Annotated[
        bool, _in(DATA, "Leave unreadable images out.", "--skip-unreadable")
    ] = False,
    noise: Annotated[float, _in(NOISE, "Share of labels to corrupt, 0..1.")] = 0.0,
    noise_kind: Annotated[str, _in(NOISE, NOISES)] = "uniform",
    noise_seed: Annotated[int | None, _in(NOISE, "Of the noise alone.")] = None,
    method: Annotated[str, _in(TRAINING, "odd, odd_mixup, erm or mixup.")] = "odd",
    model: Annotated[str | None, _in(TRAINING, NETWORKS)] = None,
    flip: Annotated[
        bool | None,
        _in(
            DATA,
            "Mirror training images at random; off where left and right matter.",
            "--flip/--no-flip",
        ),
    ] = None,
    dropout: Annotated[float, _in(TRAINING, "In networks that have any.")] = 0.0,
    epochs: Annotated[int | None, _in(TRAINING, SUITS)] = None,
    batch_size: Annotated[int | None, _in(TRAINING, SUITS)] = None,
    learning_rate: Annotated[float | None, _in(TRAINING, f"At its highest {SUITS}.")] = None,
    schedule: Annotated[str, _in(TRAINING, "cosine, step or constant.")] = "cosine",
    warmup: Annotated[float, _in(TRAINING, "Epochs of rising learning rate.")] = 0.0,
    weight_decay: Annotated[float | None, _in(TRAINING, SUITS)] = None,
    momentum: Annotated[float, _in(TRAINING)] = 0.9,
    nesterov: Annotated[bool, _in(TRAINING)] = True,
    prune_after: Annotated[
        int | None, _in(ODD, "E: epochs before pruning (default: found while training).")
    ] = None,
    percentile: Annotated[float | None, _in(ODD, PERCENTILE)] = None,
    preset: Annotated[str | None, _in(ODD, "paper: the paper's rule exactly.")] = None,
    strict: Annotated[
        bool, _in(ODD, "Stop if pruning would empty a class, or touch a tiny one.", "--strict")
    ] = False,
    set_: Annotated[
        list[str] | None,
        _in(ODD, "Any setting of the method; may be repeated.", "--set", metavar="NAME=VALUE"),
    ] = None,
) -> None:
    """Train on DATA, find its wrong labels on the way, write a run folder."""
    given = {name: context.params[name] for name in context.params if _is_given(context, name)}
    for name in ("data", "json"):
        given.pop(name, None)
    given["settings"] = _parse_settings(given.pop("set_", None) or [])
    from oddly.engine.api import train as run_training
    from oddly.terminal import TerminalWatcher

    watcher = TerminalWatcher(err_console)
    try:
        run = run_training(data, watcher=watcher, **given)
    except KeyboardInterrupt:
        _fail(f"stopped{watcher.how_to_go_on()}", 130)
    except OSError as error:  # a full disk names no file
        _fail(f"{_describe(error, watcher.folder or out)}{watcher.how_to_go_on()}", 1)
    _show(run, json)


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether the user wrote it: the defaults are the engine's business."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


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

    _print_figures(measure(device, model, steps), json)


@benchmark.command()
def ledger(
    examples: Annotated[
        int, typer.Option(min=1, help="How many are recorded and judged.")
    ] = 100_000_000,
    json: Json = False,
) -> None:
    """One ledger update against the aum package's, and 100 million examples."""
    from oddly.benchmarks.ledger import measure

    _print_figures(measure(examples), json)


def _print_figures(figures: dict[str, Any], json: bool) -> None:
    if json:
        print(json_format.dumps(figures))
        return
    for name, value in figures.items():
        out_console.print(f"{name:<28} {value}", highlight=False)


def main() -> None:
    """The entry point: what the user got wrong is told in one line, without a traceback."""
    # Threads that wait by spinning crawl when another process wants a core: six times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        app()
    except InputError as error:
        _fail(str(error), 2)
    except OSError as error:
        _fail(_describe(error), 1)


def _describe(error: OSError, where: Path | None = None) -> str:
    place = error.filename or where
    return f"{error.strerror or error}" + (f": {place}" if place else "")


def _fail(message: str, code: int) -> NoReturn:
    err_console.print(f"oddly: {message}", markup=False, highlight=False, soft_wrap=True)
    sys.exit(code)
