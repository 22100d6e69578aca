"""oddly review and apply: look at the suspects, decide, use what was decided."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oddly.cli.app import app, err_console, remark, say

if TYPE_CHECKING:
    from oddly.records import Run
    from oddly.review.apply import Outcome

RUN_FOLDER = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
IMAGES = Annotated[Path | None, typer.Option(help="Folder of the images, if they have moved.")]
DECISIONS = Annotated[
    Path | None, typer.Option(help="File of decisions (default: RUN/decisions.sqlite).")
]

NOT_AGAIN = ("data", "path", "labels", "pool_splits")  # said otherwise, or for this command alone


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
    if opened.config.get("data") is not None:  # a loop of somebody's own need not have named it
        say(f"use     {shlex.join(_use_again(opened, table))}")
    if left := about_undecided(opened, outcome):
        say(left)
    if torn := about_copies(opened, outcome):
        say(torn)
    if copy_to is not None:
        _copy(opened, outcome, copy_to, images)
    names = {*outcome.labels, *outcome.labels.values(), *outcome.removed}
    if table.suffix.lower() == ".csv" and (mind := about_formulas(sorted(names))):
        say(mind)


def _use_again(run: Run, table: Path) -> list[str]:
    """The command that takes the table, ready to be pasted: as this run, but not into its folder.

    `oddly train` names a folder after its settings, the table among them, by itself.
    """
    # `oddly clean` alone judges all splits together
    command = "clean" if run.config.get("pool_splits") else "train"
    data = str(run.config.get("data"))
    there = str(run.find_path(data))
    here = os.path.expanduser(data)
    if os.path.exists(there) and os.path.realpath(here) != os.path.realpath(there):
        from oddly.data import DATASETS  # torch takes a second

        if data not in DATASETS:
            data = there  # the run was begun in another folder than this
    words = ["oddly", command, data, "--labels", str(table)]
    if command == "clean":
        words += ["--out", str(_free_folder(run.path))]
    return [*words, *_options(run, command)]


def _free_folder(used: Path) -> Path:
    """runs/photos-clean → runs/photos-clean-2, or the next number that is free."""
    stem, _, number = used.name.rpartition("-")
    first = used.with_name(stem) if number.isdecimal() else used  # -2 already: the next is -3
    if not first.exists():
        first = used
    return next(
        place for n in count(2) if not (place := first.with_name(f"{first.name}-{n}")).exists()
    )


def _options(run: Run, command: str) -> Iterator[str]:
    """What the run was made with, as far as the command has an option for it."""
    from oddly.records import count_unread

    config = run.config
    made_with = {**config, **(config.get("settings") or {})}
    if command == "clean":  # the settings that it chose by itself it will choose again
        made_with = dict(config.get("asked") or {})
        if config.get("tried"):  # but for a network that was tried: it need not be tried again
            network = "backbone" if config.get("backbone") else "model"
            made_with[network] = config.get(network)
    # perhaps images were left out only when the run went on
    made_with["skip_unreadable"] = config.get("skip_unreadable") or any(count_unread(run.path))
    for option in _parameters(command):
        value = made_with.get(option.name)
        if option.name in NOT_AGAIN or value is None or value == option.default:
            continue
        if isinstance(value, bool):
            yield option.opts[0] if value else option.secondary_opts[0]
        elif value or not option.name.endswith("_seed"):  # of those 0 is the default, unwritten
            yield from (option.opts[0], str(value))
    if command == "train":
        yield from _settings(run)


def _settings(run: Run) -> Iterator[str]:
    """Settings of the method that have no option of their own and are not as usual."""
    own = {option.name for option in _parameters("train")}
    chosen = {k: v for k, v in (run.config.get("settings") or {}).items() if k not in own}
    if not chosen:
        return
    from oddly.methods import build_method, read_settings  # torch takes a second

    method = str(run.config.get("method"))
    usual = read_settings(method, build_method(method, {})[0])
    for name, value in chosen.items():
        if value != usual.get(name):
            yield from ("--set", f"{name}={value}")


def _parameters(command: str) -> Sequence[Any]:
    """What a command of ours can be told."""
    group: Any = typer.main.get_command(app)
    return list(group.commands[command].params)


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
    say(f"copy    {destination}: {copied.files:,} files")
    if note := about_missing(copied.missing):
        say(note)
