"""Continue a run with the settings it was started with, from its saved state."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from oddly.data import DATASETS
from oddly.data.base import DataOptions, data_directory
from oddly.engine.build import Parts
from oddly.engine.checkpoint import CannotGoOn, fingerprint
from oddly.engine.config import MACHINE, RunConfig, sort_options
from oddly.engine.stage import enter_stage
from oddly.engine.whereabouts import locate
from oddly.errors import InputError
from oddly.methods import build_method
from oddly.records import Run

FILES = ("data", "data_dir", "labels", "trusted", "weights")
"""Fields that may name a file or folder, relative to where the run was started."""
NO_FILES = (*DATASETS, "packaged", "pretrained")
MOVABLE = (*MACHINE, "compile", "test_every")
"""Fields that may change when a run is resumed, because they do not affect what it learns."""


def resumed_config(
    folder: Path, data: str | None, options: Mapping[str, Any], own: bool = False
) -> RunConfig:
    """The run's own config; options that are given must agree with it.

    `own`: the caller passed the data, and `data` is its name.
    """
    run = Run(folder)
    saved = find_files(run)
    chosen, settings = sort_options(options)
    if own:
        saved = replace(saved, data=run.config["data"])
        _agree(folder, "data", saved.data, data)
    elif data is not None:
        chosen["data"] = data
    for name, value in chosen.items():
        if name not in MOVABLE:
            values = getattr(saved, name), value
            _agree(folder, name, *map(locate_file, values) if name in FILES else values)
    method, _ = build_method(saved.method, settings)
    for name in settings.keys() & saved.settings.keys():
        _agree(folder, name, saved.settings[name], getattr(method, name))
    return replace(saved, **{k: v for k, v in chosen.items() if k in MOVABLE})


def find_files(run: Run) -> RunConfig:
    """The run's config with the paths of its files, even if it was started in another folder."""
    saved = RunConfig.from_dict(run.config)
    told = {name: getattr(saved, name) for name in FILES}
    if saved.data in DATASETS:
        told["data_dir"] = str(data_directory(DataOptions(data_dir=told["data_dir"])))
    files = {k: run.find_path(v) for k, v in told.items() if _may_be_file(v)}
    there: dict[str, Any] = {k: str(path) for k, path in files.items() if os.path.exists(path)}
    return replace(saved, **there)


def locate_file(value: Any) -> Any:
    """The real path if the value names a file or folder; else the value."""
    return locate(value) if _may_be_file(value) else value


def _may_be_file(value: Any) -> bool:
    return isinstance(value, str) and value not in NO_FILES and not value.isdecimal()


def _agree(folder: Path, name: str, begun_with: Any, asked: Any) -> None:
    if asked != begun_with:
        raise InputError(
            f"{folder} was started with {name} = {begun_with}, not {asked}; --resume cannot change"
            " it: remove the option, or train with another --out"
        )


def snapshot(parts: Parts, finished: int, seconds: float) -> dict[str, Any]:
    return {
        "finished": finished,
        "seconds": seconds,
        "data": fingerprint(parts.data),
        "model": parts.model.state_dict(),
        "optimizer": parts.optimizer.state_dict(),
        "method": parts.method.state_dict(),
        "sampler": parts.context.sampler.state_dict(),
    }


def restore(parts: Parts, state: Mapping[str, Any], folder: Path) -> tuple[int, float]:
    """Restore a snapshot; returns the finished epochs and the seconds they took."""
    with _same_version(folder):
        data, finished, seconds = state["data"], state["finished"], state["seconds"]
    if data != fingerprint(parts.data):
        raise CannotGoOn(
            folder,
            f"{parts.data.name} has changed since {folder} was started: other examples or given"
            " labels",
        )
    with _same_version(folder):
        enter_stage(parts, finished)
        parts.model.load_state_dict(state["model"])
        parts.optimizer.load_state_dict(state["optimizer"])
        parts.context.sampler.load_state_dict(state["sampler"])
        parts.method.load_state_dict(state["method"])
    return finished, seconds


@contextmanager
def _same_version(folder: Path) -> Iterator[None]:
    """Blame other errors on another version of oddly: config and data are known to agree."""
    try:
        yield
    except (InputError, torch.OutOfMemoryError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "state_dict" not in str(error):
            raise  # an error of the device, not of the file
        raise CannotGoOn(
            folder,
            f"cannot continue from the checkpoint in {folder}: it was written by another version of"
            " oddly",
        ) from error
