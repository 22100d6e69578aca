"""oddly review and apply: look at the suspects, decide, use what was decided."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oddly.cli.app import app, err_console, remark, say

if TYPE_CHECKING:
    from oddly.records import Run
    from oddly.review.apply import Outcome

RUN_FOLDER = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
IMAGES = Annotated[Path | None, typer.Option(help="Where the images lie, if they have moved.")]
DECISIONS = Annotated[
    Path | None, typer.Option(help="The file of decisions (default: RUN/decisions.sqlite).")
]


@app.command()
def review(
    run: RUN_FOLDER,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of 127.0.0.1; if it is taken, the next.")
    ] = 8640,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="The N most suspicious examples (default: all removed ones)."),
    ] = None,
    images: IMAGES = None,
    decisions: DECISIONS = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the link in the browser.")] = False,
) -> None:
    """Look at a run's suspects in the browser, one after another, and decide."""
    import webbrowser

    from oddly.records import Run
    from oddly.review.server import serve
    from oddly.review.session import Session

    session = Session(Run(run), top, images, decisions)

    def announce(link: str, taken: int) -> None:
        if port and taken != port:
            remark(f"port {port} is in use, took {taken}")
        print(f"review at  {link}", flush=True)
        progress = session.progress()
        left = progress.total - progress.decided - progress.skipped
        remark(
            f"{progress.total:,} suspects, {left:,} still open. Ctrl-C ends; decisions are kept."
        )
        if open_:
            webbrowser.open(link)

    try:
        serve(session, port, announce)
    except KeyboardInterrupt:
        pass
    finally:
        session.decisions.close()
    remark(f"decisions in {session.decisions.path}")


@app.command()
def apply(
    run: RUN_FOLDER,
    out: Annotated[
        Path | None, typer.Option(help="The table, .csv or .parquet (default: RUN/labels.csv).")
    ] = None,
    copy_to: Annotated[
        Path | None, typer.Option(help="Also copy the dataset, cleaned, into this new folder.")
    ] = None,
    images: IMAGES = None,
    decisions: DECISIONS = None,
) -> None:
    """Write what was decided as a table of labels, for `oddly train DATA --labels TABLE`."""
    from oddly.records import Run
    from oddly.review.apply import read_outcome, write_labels

    opened = Run(run)
    outcome = read_outcome(opened, decisions)
    counts = outcome.counts
    table = write_labels(opened, outcome, out)
    changed = counts["suggestion"] + counts["relabel"]
    say(f"{counts['keep']:,} kept, {changed:,} changed, {counts['remove']:,} removed")
    # `oddly clean` alone judges all splits together
    command = "clean" if opened.config.get("pool_splits") else "train"
    again = shlex.join(["oddly", command, str(opened.config.get("data")), "--labels", str(table)])
    say(f"labels  {table}\nuse     {again}")
    if copy_to is not None:
        _copy(opened, outcome, copy_to, images)


def _copy(run: Run, outcome: Outcome, destination: Path, images: Path | None) -> None:
    from rich.progress import Progress

    from oddly.copying import about_missing
    from oddly.review.copying import copy_cleaned

    with Progress(console=err_console, transient=True, disable=not err_console.is_terminal) as bar:
        task = bar.add_task("copying", total=None)
        copied = copy_cleaned(
            run,
            outcome,
            destination,
            images,
            lambda done, total: bar.update(task, completed=done, total=total),
        )
    say(f"copy    {destination}: {copied.files:,} files")
    if note := about_missing(copied.missing):
        say(note)
