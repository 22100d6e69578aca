"""Go on with a run under the settings it was begun with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oddly.engine.config import MACHINE, RunConfig, sort_options
from oddly.errors import InputError
from oddly.methods import build_method
from oddly.records import Run

MOVABLE = (*MACHINE, "compile", "test_every")
"""What may differ in the middle of a run: where it runs and who watches, not what it learns."""


def resumed_config(folder: Path, data: str | None, options: Mapping[str, Any]) -> RunConfig:
    """The run's own config; whatever is asked for besides must agree with it."""
    saved = RunConfig.from_dict(Run(folder).config)
    chosen, settings = sort_options(options)
    if data is not None:
        _agree(folder, "data", _source(saved.data), _source(data))
    for name, value in chosen.items():
        if name not in MOVABLE:
            _agree(folder, name, getattr(saved, name), value)
    method, _ = build_method(saved.method, settings)
    for name in settings.keys() & saved.settings.keys():
        _agree(folder, name, saved.settings[name], getattr(method, name))
    return replace(saved, **{k: v for k, v in chosen.items() if k in MOVABLE})


def _agree(folder: Path, name: str, begun_with: Any, asked: Any) -> None:
    if asked != begun_with:
        raise InputError(
            f"{folder} was begun with {name} = {begun_with}, not {asked}; --resume cannot change"
            " that: leave it out, or train into another --out"
        )


def _source(data: str) -> str:
    """A dataset's name as it is; the same file or folder, however it is spelt."""
    return os.path.realpath(data) if os.path.exists(data) else data
