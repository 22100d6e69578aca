"""oddly clean: find the wrong labels in a dataset of images."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

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
)

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
    from oddly.cli.cleaning import CleanTerminal
    from oddly.cli.findings import show

    watcher = CleanTerminal(err_console, partial(show, top=top, json=json))
    watcher.folder = out if resume else None
    try:
        run_cleaning(path, out, watcher=watcher, **given)
    except KeyboardInterrupt:
        fail(f"interrupted{watcher.where}{watcher.how_to_go_on()}", 130)
    except OSError as error:  # a full disk names no file
        fail(f"{describe(error, watcher.folder or out)}{watcher.how_to_go_on()}", 1)
    if watcher.unshown is not None:
        raise watcher.unshown
