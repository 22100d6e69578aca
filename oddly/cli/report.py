"""oddly report: write the page of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oddly.cli.app import app, err_console, say
from oddly.errors import InputError


@app.command()
def report(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a run or a comparison.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write (default: RUN/report.html or RUN/compare.html)."),
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder of the images, if they have moved.")
    ] = None,
) -> None:
    """Write the HTML page of a run or a comparison: one file that opens from disk."""
    from oddly.records import Run
    from oddly.report import write_report
    from oddly.terminal import TerminalWatcher

    if images is not None and not images.is_dir():
        raise InputError(f"{images}: no such folder; --images expects the folder of the images")
    if (run / "compare.json").is_file():
        from oddly.compare import Comparison, write_page

        say(str(write_page(Comparison(run), out)))
        return
    say(str(write_report(Run(run), out, images, TerminalWatcher(err_console).reading)))
