"""oddly demo and oddly train: train, and write the run's page."""

from __future__ import annotations

import json as json_format
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    print_table,
    say,
)
from oddly.errors import InputError

if TYPE_CHECKING:
    from oddly.records import Run

DATA, NOISE, TRAINING, ODD, RUN = "Data", "Label noise", "Training", "Denoising", "Run"


def _show(run: Run, json: bool) -> None:
    """Print a finished run: its table and where to look next, or its summary as JSON."""
    from oddly.report import write_report
    from oddly.terminal import TerminalWatcher, summary_table

    report = write_report(run, progress=TerminalWatcher(err_console).reading)
    if json:
        print(json_format.dumps(run.summary))
        return
    print_table(summary_table([run]))
    if run.by_rule:
        say(run.by_rule)
    if run.doubt:  # repeated here: the note at the verdict is far above, or in an earlier log
        say(run.doubt)
        if better := _better_command(run.config, run.data_root):
            say(
                f"Try instead: {better} (for images of at least 16 pixels it trains a head on"
                " pretrained features)."
            )
    say(f"run folder  {run.path}", f"report      {report}")
    if run.summary["removed"] and run.summary["threshold"] is not None:
        say(f"next        {shlex.join(['oddly', 'review', str(run.path)])}")


def _better_command(config: Mapping[str, Any], files: Path | None) -> str | None:
    """`oddly clean`, if the data are image files and the network had no pretrained weights."""
    if files is None or any(config.get(name) for name in ("backbone", "weights", "noise")):
        return None
    labels = ["--labels", config["labels"]] if config.get("labels") else []
    skip = ["--skip-unreadable"] if config.get("skip_unreadable") else []
    return shlex.join(["oddly", "clean", config["data"], *labels, *skip])


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs erm/ and odd/.")] = Path(
        "runs/demo"
    ),
    json: Json = False,
) -> None:
    """Train on digits with 40 % wrong labels, without and with denoising, and compare."""
    from oddly.demo import run_demo
    from oddly.report import write_report
    from oddly.terminal import TerminalWatcher, summary_table

    runs = run_demo(out, TerminalWatcher(err_console))
    report = write_report(runs[-1])
    if json:
        print(json_format.dumps({run.summary["method"]: run.summary for run in runs}))
        return
    print_table(summary_table(runs))
    say("", f"report  {report}")


SUITS = "(default: depends on the data)"
SOURCES = (
    "digits, cifar10, cifar100, cifar10n:aggregate …, an image folder, or a CSV or Parquet table of"
    " path and label. Not needed with --resume."
)
NETWORKS = f"wrn-D-K, resnet8, resnet9, resnet18, resnet20, whitened or a timm name {SUITS}."
NOISES = "uniform, uniform_other, pair, asymmetric, asymmetric_blocks or instance."
METHODS = (
    "odd, odd_mixup, erm, mixup, gce, luo, ren, mentornet, mentornet_dd, loss_correction, lccn,"
    " joint_opt, dmi, dropout, cleannet, curriculum, aum, elr, co_teaching, confident_learning,"
    " divide_mix, sop, gce_truncated or loss_correction_trusted."
)
TRUSTED = (
    "For methods that need trusted labels: the number of examples with known labels to hold out"
    " (default: 1000, at most a tenth), or a table of ids whose labels you trust."
)
HOLD_OUT = (
    "Share of the examples to hold out and test on, 0..0.5, with their given labels; for data"
    " without a test set."
)
PERCENTILE = (
    "p, 0..100: remove what looks no better than this percentile of the counterfactual (how random"
    " labels look at epoch E); higher removes less (default: 6 to 15, chosen from the noise; 10"
    " without sentinels)."
)


@app.command()
def train(
    context: typer.Context,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=SOURCES)] = None,
    out: Annotated[
        Path | None, in_panel(RUN, "Run folder (default: runs/DATA-METHOD-HASH).")
    ] = None,
    resume: Annotated[bool, in_panel(RUN, "Continue the run in --out.", "--resume")] = False,
    overwrite: Annotated[bool, in_panel(RUN, "Replace the run in --out.", "--overwrite")] = False,
    seed: Annotated[int, in_panel(RUN, "Seed for noise, initial weights and data order.")] = 0,
    init_seed: Annotated[int | None, in_panel(RUN, "Seed for the initial weights only.")] = None,
    order_seed: Annotated[
        int | None, in_panel(RUN, "Seed for data order, augmentation and draws only.")
    ] = None,
    device: Annotated[str, in_panel(RUN, DEVICES)] = "auto",
    precision: Annotated[str, in_panel(RUN, "Number format: auto, fp32 or bf16.")] = "auto",
    compile: Annotated[
        bool, in_panel(RUN, "Use torch.compile with CUDA graphs.", "--compile")
    ] = False,
    workers: Annotated[int, in_panel(RUN, "Number of processes that decode images.")] = 2,
    test_every: Annotated[int, in_panel(RUN, "Test every N epochs.")] = 1,
    tensorboard: Annotated[
        bool, in_panel(RUN, "Write a TensorBoard log.", "--tensorboard")
    ] = False,
    json: Json = False,
    data_dir: Annotated[
        str | None, in_panel(DATA, "Folder that holds the official datasets.")
    ] = None,
    labels: Annotated[
        str | None, in_panel(DATA, "Table of id and label; replaces the labels of these ids.")
    ] = None,
    image_size: Annotated[int, in_panel(DATA, "Side to resize image files to.")] = 32,
    download: Annotated[
        bool, in_panel(DATA, "Download the dataset if it is missing.", "--download")
    ] = False,
    skip_unreadable: Annotated[
        bool, in_panel(DATA, "Leave out images that cannot be read.", "--skip-unreadable")
    ] = False,
    noise: Annotated[float, in_panel(NOISE, "Share of labels to corrupt, 0..1.")] = 0.0,
    noise_kind: Annotated[str, in_panel(NOISE, NOISES)] = "uniform",
    noise_seed: Annotated[int | None, in_panel(NOISE, "Seed for the noise only.")] = None,
    trusted: Annotated[str | None, in_panel(DATA, TRUSTED, metavar="N|FILE")] = None,
    hold_out: Annotated[float, in_panel(DATA, HOLD_OUT)] = 0.0,
    method: Annotated[str, in_panel(TRAINING, METHODS)] = "odd",
    model: Annotated[str | None, in_panel(TRAINING, NETWORKS)] = None,
    backbone: Annotated[
        str | None,
        in_panel(TRAINING, "A timm network to use frozen; a head trains on its features."),
    ] = None,
    weights: Annotated[
        str | None, in_panel(TRAINING, "Weights of the backbone: packaged, pretrained or a FILE.")
    ] = None,
    fine_tune: Annotated[
        bool, in_panel(TRAINING, "Train the whole backbone, not just a head.", "--fine-tune")
    ] = False,
    pool_splits: Annotated[
        bool, in_panel(DATA, "Train on train, val and test together.", "--pool-splits")
    ] = False,
    flip: Annotated[
        bool | None,
        in_panel(
            DATA,
            "Mirror training images at random; turn off where left and right matter.",
            "--flip/--no-flip",
        ),
    ] = None,
    cutout: Annotated[
        int, in_panel(DATA, "Side of a square to blank at random in training images; 0 for none.")
    ] = 0,
    reflect: Annotated[
        bool,
        in_panel(DATA, "Pad shifted images with their mirror image instead of black.", "--reflect"),
    ] = False,
    mirror_test: Annotated[
        bool,
        in_panel(
            RUN, "Average test predictions over each image and its mirror image.", "--mirror-test"
        ),
    ] = False,
    dropout: Annotated[
        float, in_panel(TRAINING, "Dropout rate, if the network has dropout.")
    ] = 0.0,
    epochs: Annotated[int | None, in_panel(TRAINING, f"Number of epochs {SUITS}.")] = None,
    batch_size: Annotated[int | None, in_panel(TRAINING, f"Batch size {SUITS}.")] = None,
    learning_rate: Annotated[
        float | None, in_panel(TRAINING, f"Peak learning rate {SUITS}.")
    ] = None,
    schedule: Annotated[
        str, in_panel(TRAINING, "Learning-rate schedule: cosine, step or constant.")
    ] = "cosine",
    warmup: Annotated[float, in_panel(TRAINING, "Epochs of learning-rate warm-up.")] = 0.0,
    restart: Annotated[
        int, in_panel(TRAINING, "Restart the schedule after this many epochs; 0 for never.")
    ] = 0,
    weight_decay: Annotated[float | None, in_panel(TRAINING, f"Weight decay {SUITS}.")] = None,
    momentum: Annotated[float, in_panel(TRAINING, "Momentum of SGD, 0..1.")] = 0.9,
    nesterov: Annotated[bool, in_panel(TRAINING, "Use Nesterov momentum.")] = True,
    prune_after: Annotated[
        int | None, in_panel(ODD, "Prune after epoch E (default: found during training).")
    ] = None,
    percentile: Annotated[float | None, in_panel(ODD, PERCENTILE)] = None,
    target_precision: Annotated[
        float | None,
        in_panel(
            ODD, "Cut so that this share of the removed labels is expected to be wrong, 0..1."
        ),
    ] = None,
    rounds: Annotated[
        int, in_panel(ODD, "Number of verdicts; each after the first may readmit examples.")
    ] = 3,
    retrain: Annotated[
        bool, in_panel(ODD, "At the end, train a new network on what was kept.", "--retrain")
    ] = False,
    preset: Annotated[
        str | None, in_panel(ODD, "Settings to start from; paper is the paper's exact rule.")
    ] = None,
    strict: Annotated[
        bool, in_panel(ODD, "Stop if pruning would empty a class or touch a tiny one.", "--strict")
    ] = False,
    set_: Annotated[
        list[str] | None,
        in_panel(ODD, "Any setting of the method; repeatable.", "--set", metavar="NAME=VALUE"),
    ] = None,
) -> None:
    """Train on DATA, find its wrong labels during training, and write a run folder."""
    given = given_options(context, leave_out=("data", "json"))
    given["settings"] = parse_settings(given.pop("set_", None) or [])
    if not resume:
        check_there(data, name_too=True)
    from oddly.engine.api import train as run_training
    from oddly.terminal import TerminalWatcher

    watcher = TerminalWatcher(err_console)
    watcher.folder = out if resume else None
    try:
        run = run_training(data, watcher=watcher, **given)
    except KeyboardInterrupt:
        fail(f"interrupted{watcher.where}{watcher.how_to_go_on()}", 130)
    except OSError as error:  # a full disk names no file
        fail(f"{describe(error, watcher.folder or out)}{watcher.how_to_go_on()}", 1)
    _show(run, json)


def parse_settings(pairs: list[str], option: str = "--set") -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise InputError(f"{option} expects NAME=VALUE, got '{pair}'")
    return {name.strip(): value.strip() for name, _, value in (p.partition("=") for p in pairs)}
