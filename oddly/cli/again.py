"""Rebuild the command that started a run, with changes, for the user to paste."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from oddly.cli.app import app

if TYPE_CHECKING:
    from oddly.records import Run

NOT_AGAIN = ("data", "path", "labels", "pool_splits")  # options that are handled separately


def command_again(run: Run, labels: str | None, leave_out: Collection[str] = ()) -> list[str]:
    """The command of a run, ready to paste, with this table of labels and a free output folder.

    `oddly train` needs no --out: it names the folder after its settings, which include the table.
    """
    # only `oddly clean` judges all splits together by default
    command = "clean" if run.config.get("pool_splits") else "train"
    data = str(run.config.get("data"))
    there = str(run.find_path(data))
    here = os.path.expanduser(data)
    if os.path.exists(there) and os.path.realpath(here) != os.path.realpath(there):
        from oddly.data import DATASETS  # torch takes a second

        if data not in DATASETS:
            data = there  # the run was started in another working directory
    words = ["oddly", command, data]
    if labels is not None:
        words += ["--labels", labels]
    if command == "clean":
        words += ["--out", str(_free_folder(run.path))]
    return [*words, *_options(run, command, leave_out)]


def _free_folder(used: Path) -> Path:
    """runs/photos-clean → runs/photos-clean-2, or the next number that is free."""
    stem, _, number = used.name.rpartition("-")
    first = used.with_name(stem) if number.isdecimal() else used  # runs/photos-clean-2 → …-3
    if not first.exists():
        first = used
    return next(
        place for n in count(2) if not (place := first.with_name(f"{first.name}-{n}")).exists()
    )


def _options(run: Run, command: str, leave_out: Collection[str]) -> Iterator[str]:
    """The options that the run was started with, as far as the command has them."""
    from oddly.records import count_unread

    config = run.config
    made_with = {**config, **(config.get("settings") or {})}
    if command == "clean":  # only the user's options: it will choose the other settings again …
        made_with = dict(config.get("asked") or {})
        if config.get("tried"):  # … except for the network, which need not be tried again
            network = "backbone" if config.get("backbone") else "model"
            made_with[network] = config.get(network)
    # the option may have been given only when the run was resumed
    made_with["skip_unreadable"] = config.get("skip_unreadable") or any(count_unread(run.path))
    for option in _parameters(command):
        value = made_with.get(option.name)
        if option.name in NOT_AGAIN or option.name in leave_out:
            continue
        if value is None or value == option.default:
            continue
        if isinstance(value, bool):
            yield option.opts[0] if value else option.secondary_opts[0]
        elif value or not option.name.endswith("_seed"):  # a seed of 0 is the default
            yield from (option.opts[0], str(value))
    if command == "train":
        yield from _settings(run)


def _settings(run: Run) -> Iterator[str]:
    """Settings of the method without their own option, if they are not the default."""
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
    """The parameters of a command."""
    group: Any = typer.main.get_command(app)
    return list(group.commands[command].params)
