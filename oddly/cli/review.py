"""oddly review and apply: look at the suspects, decide, and use the decisions."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oddly.cli.again import command_again
from oddly.cli.app import app, err_console, remark, say
from oddly.errors import count

if TYPE_CHECKING:
    from oddly.records import Run
    from oddly.review.apply import Outcome

RUN_FOLDER = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
IMAGES = Annotated[Path | None, typer.Option(help="Folder of the images, if they have moved.")]
DECISIONS = Annotated[
    Path | None, typer.Option(help="File of decisions (default: RUN/decisions.sqlite).")
]


@app.command()
def review(
    run: RUN_FOLDER,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; if in use, the next free one.")
    ] = 8640,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Show the N most suspicious (default: all removed)."),
    ] = None,
    images: IMAGES = None,
    decisions: DECISIONS = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the link in the browser.")] = False,
) -> None:
    """Look at the suspects of a run in the browser, one by one, and decide."""
    import webbrowser

    from oddly.records import Run
    from oddly.review.server import serve
    from oddly.review.session import Session

    session = Session(Run(run), top, images, decisions)

    def announce(link: str, taken: int) -> None:
        if port and taken != port:
            remark(f"port {port} is in use; using {taken}")
        print(f"review at  {link}", flush=True)
        progress = session.progress()
        left = progress.total - progress.decided - progress.skipped
        remark(
            f"{progress.total:,} to review, {left:,} still open."
            " Press Ctrl-C to stop; decisions are saved."
        )
        if note := session.about_pictures():
            remark(note)
        if open_:
            webbrowser.open(link)

    try:
        serve(session, port, announce)
    except KeyboardInterrupt:
        pass
    finally:
        session.decisions.close()
    remark(f"decisions saved in {session.decisions.path}")


@app.command()
def apply(
    run: RUN_FOLDER,
    out: Annotated[
        Path | None,
        typer.Option(help="Table to write, .csv or .parquet (default: RUN/labels.csv)."),
    ] = None,
    copy_to: Annotated[
        Path | None, typer.Option(help="Also copy the cleaned dataset to this new folder.")
    ] = None,
    images: IMAGES = None,
    decisions: DECISIONS = None,
) -> None:
    """Write your decisions as a table of labels, for `oddly train DATA --labels TABLE`."""
    from oddly.records import Run, about_formulas
    from oddly.review.apply import about_copies, about_undecided, read_outcome, write_labels

    opened = Run(run)
    outcome = read_outcome(opened, decisions)
    counts = outcome.counts
    table = write_labels(opened, outcome, out)
    changed = counts["suggestion"] + counts["relabel"]
    say(f"{counts['keep']:,} kept, {changed:,} changed, {counts['remove']:,} removed")
    say(f"labels  {table}")
    if opened.config.get("data") is not None:  # `save_run` in a user's own loop may leave it out
        say(f"use     {shlex.join(command_again(opened, str(table)))}")
    if left := about_undecided(opened, outcome):
        say(left)
    if torn := about_copies(opened, outcome):
        say(torn)
    if copy_to is not None:
        _copy(opened, outcome, copy_to, images)
    names = {*outcome.labels, *outcome.labels.values(), *outcome.removed}
    if table.suffix.lower() == ".csv" and (mind := about_formulas(sorted(names))):
        say(mind)


def _copy(run: Run, outcome: Outcome, destination: Path, images: Path | None) -> None:
    from oddly.clean.leave import check_copy_to, copy_rows, describe_copy, holds_rows
    from oddly.review.apply import list_kept

    if not holds_rows(run):
        _copy_files(run, outcome, destination, images)
        return
    check_copy_to(destination, str(run.find_path(str(run.config["data"]))))
    copied = copy_rows(destination, list_kept(run, outcome))
    say(f"copy    {describe_copy(run, destination, copied)}")


def _copy_files(run: Run, outcome: Outcome, destination: Path, images: Path | None) -> None:
    from rich.progress import Progress

    from oddly.copying import about_missing
    from oddly.review.copying import copy_cleaned

    bar = Progress(console=err_console, transient=True)
    task = bar.add_task("copying", total=None)
    # Not disable=True: older versions of rich then print an empty line.
    with bar if err_console.is_terminal else nullcontext():
        copied = copy_cleaned(
            run,
            outcome,
            destination,
            images,
            lambda done, total: bar.update(task, completed=done, total=total),
        )
    say(f"copy    {destination}: {count(copied.files, 'file')}")
    if note := about_missing(copied.missing):
        say(note)
