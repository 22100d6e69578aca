"""Hooks to follow training; by default they do nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


class Stopped(Exception):
    """The watcher asked to stop; everything so far is saved."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"stopped after epoch {epoch}")
        self.epoch = epoch


class Watcher:
    """Hooks that all do nothing; the command line draws progress bars with them."""

    def note(self, text: str) -> None:
        """Something the user should read."""

    def reading(self, done: int, total: int) -> None:
        """`done` of `total` image files have been read."""

    def begin(self, title: str, folder: Path, epochs: int, finished: int) -> None:
        """Training in `folder` starts; `finished` epochs are already done."""

    def begin_epoch(self, epoch: int, steps: int) -> None:
        """Epoch `epoch` (from 1) starts."""

    def step(self, examples: int) -> None:
        """One step is done."""

    def saved(self, epoch: int) -> None:
        """A checkpoint is written: the run can be continued after epoch `epoch`."""

    def should_stop(self, row: Mapping[str, Any]) -> bool:
        """Whether to save and stop after this epoch; if so, `Stopped` is raised."""
        return False

    def end_epoch(self, row: Mapping[str, Any]) -> None:
        """An epoch is done; `row` is its line in metrics.jsonl."""

    def end(self) -> None:
        """Training is over, or has failed."""


class UntilThen(Watcher):
    """Passes everything on to `inner`; stops after epoch `until`, or when time is nearly up."""

    def __init__(
        self, inner: Watcher, seconds_left: Callable[[], float], until: int | None = None
    ) -> None:
        self.seconds_left, self.until, self.out_of_time = seconds_left, until, False
        for name, hook in vars(Watcher).items():
            if callable(hook) and name != "should_stop":
                setattr(self, name, getattr(inner, name))

    def should_stop(self, row: Mapping[str, Any]) -> bool:
        if row["epoch"] == self.until:
            return True  # finished, however little time is left
        self.out_of_time = 1.2 * float(row["seconds"]) > self.seconds_left()  # of one more epoch
        return self.out_of_time
