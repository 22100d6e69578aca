"""What all commands share: the app, the consoles, one line for what went wrong."""

from __future__ import annotations

import io
import json as json_format
import os
import sys
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from typer.core import TyperGroup

from oddly.cli.memory import keep_freed_memory
from oddly.errors import InputError, shown

ORDER = ("demo", "clean", "report", "review", "apply", "train", "compare", "reproduce", "benchmark")


class InOrder(TyperGroup):
    """Commands as a newcomer needs them, not as their files are imported."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    cls=InOrder,
    help="Train an image classifier on labels you don't trust, and find the wrong ones.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(asked: bool) -> None:
    if asked:
        from oddly import __version__

        print(f"oddly {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options that come before a command."""


out_console = Console(emoji=False)  # a file may be called :smile:
err_console = Console(stderr=True, emoji=False)

DEVICES = "Device to run on: auto, cpu, cuda or mps."
Device = Annotated[str, typer.Option(help=DEVICES)]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON only.")]


def in_panel(panel: str, help: str | None = None, flag: str | None = None, **more: Any) -> Any:
    """An option under a heading of --help; `flag` where it is not the parameter's name."""
    names = [flag] if flag else []
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


def given_options(context: typer.Context, leave_out: Collection[str]) -> dict[str, Any]:
    """What the user wrote, for the function behind: the defaults are the engine's business."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {
        name: context.params[name]
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE" and name not in leave_out
    }


def check_there(source: str | None, name_too: bool = False) -> None:
    """Tell of a file or folder that is missing now: the rest loads torch, for seconds.

    `name_too`: it may also be the name of a dataset, unless it looks like a path.
    """
    if source is None or os.path.exists(os.path.expanduser(source)):
        return
    if name_too and "/" not in source and not source.startswith((".", "~")):
        from oddly.text_table import SUFFIXES

        if Path(source).suffix.lower() not in SUFFIXES:
            return
    raise InputError(f"{shown(source)}: no such file or folder")


def say(*lines: str) -> None:
    """The answer, as it is: brackets in a name are no markup, and no path is broken.

    A name may hold what a terminal obeys: such signs are spelt out, line breaks too.
    """
    for line in lines:
        out_console.print(shown(line), markup=False, highlight=False, soft_wrap=True)


def remark(text: str) -> None:
    """What is not the answer: to stderr, so that a pipe gets the answer alone."""
    for line in text.split("\n"):
        err_console.print(shown(line), markup=False, highlight=False, soft_wrap=True)


def print_table(table: Table) -> None:
    """In full, also into a file or a narrow window: a column cut off is of no use."""
    room = out_console.options.update(max_width=1_000)
    width = Measurement.get(out_console, room, table).maximum
    Console(file=out_console.file, emoji=False, width=max(width, out_console.width)).print(table)


def print_figures(figures: dict[str, Any], json: bool) -> None:
    if json:
        print(json_format.dumps(figures))
        return
    for name, value in figures.items():
        say(f"{name:<28} {value}")


def main() -> None:
    """The entry point: what the user got wrong is told in one line, without a traceback."""
    # Threads that wait by spinning crawl when another process wants a core: six times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    keep_freed_memory()
    # Pillow's own remark on a large picture: what cannot be read is told, the rest is read.
    warnings.filterwarnings("ignore", message=r"Image size \(\d+ pixels\) exceeds limit")
    if isinstance(sys.stdout, io.TextIOWrapper):  # as stderr is: a name in signs that the
        sys.stdout.reconfigure(errors="backslashreplace")  # terminal has not is no reason to end
    try:
        app()
    except InputError as error:
        fail(str(error), 2)
    except OSError as error:
        fail(describe(error), 1)
    except RuntimeError as error:
        # Python wraps what interrupts the making of a class: torch makes many while it is loaded.
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        fail("interrupted", 130)


def describe(error: OSError, where: Path | None = None) -> str:
    place = error.filename2 or error.filename or where  # a copy fails at its target, the second
    return f"{error.strerror or error}" + (f": {place}" if place else "")


def fail(message: str, code: int) -> NoReturn:
    remark(f"oddly: {message}")
    sys.exit(code)
