"""`oddly.train`: a whole run from Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from oddly.data import DATASETS
from oddly.data.base import LabelledData
from oddly.engine.build import check_early
from oddly.engine.config import RunConfig
from oddly.engine.loop import run_config
from oddly.engine.resume import resumed_config
from oddly.engine.watch import Watcher
from oddly.engine.whereabouts import locate, name_after
from oddly.errors import InputError, shown, unknown_name
from oddly.methods import PRESETS
from oddly.records import Run, config_hash


def train(
    data: str | Path | LabelledData | None = None,
    out: str | Path | None = None,
    *,
    preset: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    watcher: Watcher | None = None,
    **options: Any,
) -> Run:
    """Train on `data`, find its wrong labels and return the run.

        run = oddly.train("digits", noise=0.4, percentile=10)
        run.summary["test_accuracy"], run.verdicts.query("not keep")

    `data`: a dataset name, an image folder, a table, or your own `LabelledData`.
    `options`: any field of `RunConfig`, or any setting of the method.
    `resume` continues the run in `out`, which remembers its data and options (except a
    `LabelledData`: pass that again).
    """
    own = None
    if isinstance(data, LabelledData):
        own, data = data, data.name
    name = None if data is None else str(data)
    if preset is not None:
        if preset not in PRESETS:
            raise unknown_name("preset", preset, PRESETS)
        options = {**PRESETS[preset], **options}
    if resume:
        folder = check_resume(out, overwrite)
        config = resumed_config(folder, name, options, own is not None)
        if (run := Run(folder)).is_done:
            return run
    elif name is None:
        raise InputError("nothing to train on: give a dataset name, an image folder or a table")
    else:
        config = RunConfig.from_options(name, options)
        check_early(config)
        folder = choose_folder(config, out)
        if own is None:
            check_outside(folder, name)
    return run_config(config, folder, own, resume, overwrite, watcher)


def check_resume(out: str | Path | None, overwrite: bool) -> Path:
    if out is None:
        raise InputError("--resume needs --out, the folder of the run to continue")
    if overwrite:
        raise InputError("--resume and --overwrite cannot be used together")
    return Path(out)


def check_outside(folder: Path, data: str) -> None:
    """Refuse to write into a folder of images: it would look like one more class."""
    root = os.path.expanduser(data)
    if data in DATASETS or not os.path.isdir(root):
        return
    if Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root)):
        raise InputError(
            f"{folder} is inside the images of {shown(data)}; choose an --out folder somewhere else"
        )


def choose_folder(config: RunConfig, out: str | Path | None) -> Path:
    """The folder `out`, or one named after data, method and settings."""
    if out is not None:
        return Path(out)
    told = {**config.to_dict(), "data": locate(config.data)}
    return Path("runs") / f"{name_after(config.data)}-{config.method}-{config_hash(told)[:8]}"
