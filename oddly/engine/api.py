"""`oddly.train`: a whole run from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oddly.data.base import LabelledData
from oddly.engine.config import RunConfig
from oddly.engine.loop import run_config
from oddly.engine.watch import Watcher
from oddly.errors import unknown_name
from oddly.methods import PRESETS
from oddly.records import Run, config_hash


def train(
    data: str | Path | LabelledData,
    out: str | Path | None = None,
    *,
    preset: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    watcher: Watcher | None = None,
    **options: Any,
) -> Run:
    """Train on `data` and return the run folder as an object.

        run = oddly.train("digits", noise=0.4, percentile=10)
        run.summary["test_accuracy"], run.verdicts.query("not keep")

    `data`: a dataset's name, an image folder, a table, or a `LabelledData` of your own.
    `options`: any field of `RunConfig`; any other name is a setting of the method.
    """
    own = data if isinstance(data, LabelledData) else None
    if preset is not None:
        if preset not in PRESETS:
            raise unknown_name("preset", preset, PRESETS)
        options = {**PRESETS[preset], **options}
    config = RunConfig.from_options(own.name if own else str(data), options)
    return run_config(config, choose_folder(config, out), own, resume, overwrite, watcher)


def choose_folder(config: RunConfig, out: str | Path | None) -> Path:
    """The folder asked for, or one named after data, method and settings."""
    if out is not None:
        return Path(out)
    name = Path(config.data).name.replace(":", "-")
    return Path("runs") / f"{name}-{config.method}-{config_hash(config.to_dict())[:8]}"
