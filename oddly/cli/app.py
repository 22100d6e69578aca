"""What all commands share: the app, the consoles, and errors in one line."""

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
    """Lists commands in the order that a newcomer needs them, not in the order of imports."""

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
    """An option in a panel of --help; `flag` if it differs from the parameter's name."""
    names = [flag] if flag else []
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


def given_options(context: typer.Context, leave_out: Collection[str]) -> dict[str, Any]:
    """The options that the user gave; defaults are left to the function that is called."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {
        name: context.params[name]
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE" and name not in leave_out
    }


def check_there(source: str | None, name_too: bool = False) -> None:
    """Fail on a missing file or folder before torch is loaded, which takes seconds.

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
    """Print results as they are: brackets are not markup, and paths are not wrapped.

    Control characters and line breaks in names are escaped.
    """
    for line in lines:
        out_console.print(shown(line), markup=False, highlight=False, soft_wrap=True)


def remark(text: str) -> None:
    """Print everything that is not a result to stderr, so that a pipe gets only results."""
    for line in text.split("\n"):
        err_console.print(shown(line), markup=False, highlight=False, soft_wrap=True)


def print_table(table: Table) -> None:
    """Print a table in full width, even to a file or a narrow window."""
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
    """The entry point: input errors are printed in one line, without a traceback."""
    # Spinning threads get six times slower when another process wants a core.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    keep_freed_memory()
    # Ignore Pillow's warning about large pictures; unreadable ones are reported anyway.
    warnings.filterwarnings("ignore", message=r"Image size \(\d+ pixels\) exceeds limit")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # As for stderr: do not fail on names that the terminal's encoding does not have.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except InputError as error:
        fail(str(error), 2)
    except OSError as error:
        fail(describe(error), 1)
    except RuntimeError as error:
        # Ctrl-C while torch is imported: Python wraps it if it comes while a class is created.
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        fail("interrupted", 130)


def describe(error: OSError, where: Path | None = None) -> str:
    place = error.filename2 or error.filename or where  # filename2: the target of a copy
    return f"{error.strerror or error}" + (f": {place}" if place else "")


def fail(message: str, code: int) -> NoReturn:
    remark(f"oddly: {message}")
    sys.exit(code)
