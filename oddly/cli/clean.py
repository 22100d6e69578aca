"""oddly clean: find the wrong labels in a dataset of images."""

from __future__ import annotations

import json as json_format
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oddly.cli.again import command_again
from oddly.cli.app import (
    DEVICES,
    Json,
    app,
    check_there,
    describe,
    err_console,
    fail,
    given_options,
    in_panel,
    say,
)
from oddly.errors import count, shown

if TYPE_CHECKING:
    from oddly.clean.findings import Findings
    from oddly.records import Run

DATA, CHOICES, WRITE, RUN = "Data", "Overrides", "What to write", "Run"
SOURCE = (
    "A folder with one sub-folder per class, a CSV or Parquet table of path and label, or a Hugging"
    " Face dataset folder or Parquet file. Not needed with --resume."
)


@app.command()
def clean(
    context: typer.Context,
    path: Annotated[str | None, typer.Argument(metavar="PATH", help=SOURCE)] = None,
    out: Annotated[Path | None, in_panel(RUN, "Run folder (default: runs/PATH-clean).")] = None,
    resume: Annotated[bool, in_panel(RUN, "Continue the run in --out.", "--resume")] = False,
    overwrite: Annotated[bool, in_panel(RUN, "Replace the run in --out.", "--overwrite")] = False,
    device: Annotated[str, in_panel(RUN, DEVICES)] = "auto",
    seed: Annotated[int, in_panel(RUN, "Seed for initial weights and data order.")] = 0,
    json: Json = False,
    skip_unreadable: Annotated[
        bool, in_panel(DATA, "Leave out images that cannot be read.", "--skip-unreadable")
    ] = False,
    labels: Annotated[
        str | None, in_panel(DATA, "Table of id and label; replaces the labels of these ids.")
    ] = None,
    image_size: Annotated[int | None, in_panel(CHOICES, "Side to resize images to.")] = None,
    model: Annotated[
        str | None,
        in_panel(CHOICES, "Train this network from scratch instead of using a backbone."),
    ] = None,
    backbone: Annotated[str | None, in_panel(CHOICES, "A timm network to use frozen.")] = None,
    weights: Annotated[
        str | None, in_panel(CHOICES, "Weights of the backbone: packaged, pretrained or a FILE.")
    ] = None,
    fine_tune: Annotated[
        bool, in_panel(CHOICES, "Train the whole backbone, not just a head.", "--fine-tune")
    ] = False,
    epochs: Annotated[int | None, in_panel(CHOICES, "Number of epochs.")] = None,
    batch_size: Annotated[int | None, in_panel(CHOICES, "Batch size.")] = None,
    learning_rate: Annotated[float | None, in_panel(CHOICES, "Peak learning rate.")] = None,
    prune_after: Annotated[int | None, in_panel(CHOICES, "Prune after epoch E.")] = None,
    percentile: Annotated[
        float | None,
        in_panel(CHOICES, "p, 0..100: higher finds fewer but surer suspects (default: 6 to 15)."),
    ] = None,
    top: Annotated[int | None, in_panel(WRITE, "List and export the N worst.")] = None,
    copy_to: Annotated[
        Path | None,
        in_panel(
            WRITE,
            "Copy the images that are not suspects to this empty folder, or list them in NAME.csv.",
        ),
    ] = None,
    export: Annotated[
        list[str] | None,
        in_panel(WRITE, "Export for cleanlab, fiftyone, label-studio, or as ids; repeatable."),
    ] = None,
) -> None:
    """Find the wrong labels in PATH, a dataset of images. Nothing in PATH is changed."""
    given = given_options(context, leave_out=("path", "out", "json"))
    if not resume:
        check_there(path)
    from oddly.clean.api import clean as run_cleaning

    watcher = _make_watcher(top, json)
    watcher.folder = out if resume else None
    try:
        run_cleaning(path, out, watcher=watcher, **given)
    except KeyboardInterrupt:
        fail(f"interrupted{watcher.where}{watcher.how_to_go_on()}", 130)
    except OSError as error:  # a full disk names no file
        fail(f"{describe(error, watcher.folder or out)}{watcher.how_to_go_on()}", 1)
    if watcher.unshown is not None:
        raise watcher.unshown


def _make_watcher(top: int | None, json: bool) -> Any:
    from rich.table import Table

    from oddly.clean import Choice, CleanWatcher
    from oddly.terminal import TerminalWatcher

    class Terminal(TerminalWatcher, CleanWatcher):
        """Prints the chosen settings before the progress bars, the findings before exports."""

        command = "clean"
        unshown: OSError | SystemExit | None = None

        def chosen(self, choices: Sequence[Choice], folder: Path) -> None:
            self.folder = folder
            table = Table(box=None, show_header=False, pad_edge=False)
            for choice in choices:
                table.add_row(choice.name, shown(choice.value), choice.reason, style=None)
            self.console.print(table, highlight=False, markup=False)

        def judged(self, run: Run) -> None:
            try:
                _show(run, top, json)
            except (OSError, SystemExit) as error:  # closed pipe: still write copy and exports
                self.unshown = error

    return Terminal(err_console)


def _show(run: Run, top: int | None, json: bool) -> None:
    """Print the findings, and what to do next."""
    from oddly.clean.findings import summarise, suspects_of

    findings = summarise(run)
    if json:
        print(json_format.dumps({**asdict(findings), "run": str(run.path)}))
        return
    say(*_describe(findings))
    if top is not None:
        worst = suspects_of(run, top)
        say("", f"{len(worst):,} most suspicious:")
        for row in worst.itertuples():
            say(f"  {row.id}  {row.given_name} → {row.suggested_name}")
    place = shlex.quote(str(run.path))
    say("", f"report  {run.path / 'report.html'}", f"tables  {run.path / 'verdicts.csv'}")
    if findings.doubt and run.config.get("backbone") and not run.config.get("fine_tune"):
        say(f"try     {shlex.join(_fine_tune(run))}  # train the whole network, not just a head")
    those_kept = "" if findings.suspects else " --top 50"  # otherwise there is nothing to review
    say(f"next    oddly review {place}{those_kept}")


def _fine_tune(run: Run) -> list[str]:
    """The command for a fine-tuned run, which can learn what frozen features do not show."""
    for_a_head = ("model", "epochs", "batch_size", "learning_rate", "prune_after", "image_size")
    return [*command_again(run, run.config.get("labels"), leave_out=for_a_head), "--fine-tune"]


def _describe(findings: Findings) -> list[str]:
    lines = [_headline(findings)]
    if findings.doubt:
        lines.append(findings.doubt)
    if findings.by_rule:
        lines.append(findings.by_rule)
    if findings.readmitted:
        were = "was" if findings.readmitted == 1 else "were"
        lines.append(f"{findings.readmitted:,} more {were} suspected at first, then cleared")
    if findings.decided:
        many = "label was" if findings.decided == 1 else "labels were"
        left = "is" if findings.decided == 1 else "are"
        lines.append(f"{findings.decided:,} {many} set by a person and {left} left unchanged")
    lines.append(_describe_share(findings))
    both = ((findings.unreadable, "image"), (findings.closed, "folder"))
    if unread := [count(number, what) for number, what in both if number]:
        lines.append(f"{' and '.join(unread)} could not be read (unreadable.csv)")
    if findings.duplicates:
        lines.append(_describe_copies(findings))
    if findings.spreadsheet:
        lines.append(findings.spreadsheet)
    if findings.classes:
        lines += ["", "classes with the largest share of suspects"]
        lines += [f"  {hit:,} of {size:,} {name}" for name, hit, size in findings.classes]
    if findings.mostly_suspect:
        named = [f"{name} ({hit:,} of {size:,})" for name, hit, size in findings.mostly_suspect]
        advice = "verdicts on rare or hard classes are unreliable, so look before you remove"
        lines.append(f"more than half are suspects in {', '.join(named)}: {advice}")
    if findings.pairs:
        lines += ["", "most frequent pairs, given → suggested"]
        lines += [f"  {given} → {other}: {number:,}" for given, other, number in findings.pairs]
    return lines


def _headline(findings: Findings) -> str:
    number = f"{findings.suspects:,} of {findings.images:,} images"
    share = f"({100 * findings.suspects / findings.images:.1f} %)"
    if findings.suspects and findings.suspects == findings.contradicted:
        are = "is a suspect" if findings.suspects == 1 else "are suspects"
        which = "a copy with another label"
        if findings.suspects > 1:
            which = "all of them copies with different labels"
        return f"{number} {are} {share}, {which}"
    doubt = ", but this verdict is unreliable:" if findings.doubt else ""
    look = "looks" if findings.suspects == 1 else "look"
    return f"{number} {look} mislabelled {share}{doubt}"


def _describe_share(findings: Findings) -> str:
    from oddly.engine.outcome import MEASURED_FROM

    if (noise := findings.estimated_noise) is None:
        why = "too few images" if findings.images < MEASURED_FROM else "no labels were planted"
        return f"no estimate of the share of wrong labels: {why}"
    rate, low, high = (100 * noise[name] for name in ("rate", "low", "high"))
    bounds = f"between {low:.1f} and {high:.1f} %"
    meaning = "the lower bound counts only labels that look entirely random"
    doubt = "; also unreliable" if findings.doubt else ""
    return f"estimated share of wrong labels: {rate:.1f} %, {bounds} ({meaning}){doubt}"


def _describe_copies(findings: Findings) -> str:
    if findings.duplicates > 1:
        line = f"{findings.duplicates:,} pictures occur more than once"
        which = f", {findings.conflicting:,} of them with different labels"
    elif findings.conflicting:
        line, which = f"1 picture occurs {findings.copies:,} times", ", with different labels"
    else:
        line = "1 picture occurs more than once"
    if findings.conflicting:
        many = "copy is a suspect" if findings.contradicted == 1 else "copies are suspects"
        every = "all " if findings.contradicted == findings.copies else ""
        why = "" if every else " because of this"
        line += f"{which}: {every}{findings.contradicted:,} {many}{why}"
    return f"{line} (duplicates.csv)"
