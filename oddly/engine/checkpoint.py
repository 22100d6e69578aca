"""Save a run so that it can go on exactly where it stopped."""

from __future__ import annotations

import hashlib
import io
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from oddly.data.base import LabelledData
from oddly.errors import InputError, first_line
from oddly.records import Run, RunWriter, replacing

NAME = "checkpoint.pt"
SECONDS_BETWEEN = 60.0
QUICK = 0.6  # if saving takes longer (1 % of the time), it is done less often


class CannotGoOn(InputError):
    """The saved state of a run cannot be used."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(f"{why}; start over with --overwrite")
        self.folder, self.why = folder, why


class Checkpointer:
    """Saves one file, at most once a minute unless it is urgent.

    A network that takes long to save (WRN-28-10: 300 MB) is saved less often.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._last = time.monotonic()
        self._took = 0.0

    def due(self, urgent: bool = False) -> bool:
        between = SECONDS_BETWEEN * max(1.0, self._took / QUICK)
        return urgent or time.monotonic() - self._last >= between

    def save(self, state: dict[str, Any], milestone: int | None = None) -> None:
        """Replace the checkpoint once the new one is complete; a milestone gets its own file."""
        begun = time.monotonic()
        content = io.BytesIO()
        torch.save(state, content)  # not into the file: torch would not say that a disk is full
        path = self.path if milestone is None else milestone_path(self.path.parent, milestone)
        with replacing(path) as file:
            file.write(content.getbuffer())
        if milestone is None:
            self._last = time.monotonic()
            self._took = self._last - begun

    def remove(self) -> None:
        """Remove the checkpoint, which a finished run does not need."""
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Fork:
    """The start of a run that takes over the first epochs of another run, its trunk.

    Both must have the same settings up to there. The trunk's method must store the state that the
    fork's method needs: an `odd` that prunes late does, for an `odd` that prunes earlier.
    """

    trunk: Path
    epoch: int
    """Number of epochs to take over; the trunk must have this milestone."""

    def load(self) -> dict[str, Any]:
        state = load_checkpoint(self.trunk, milestone_path(self.trunk, self.epoch).name)
        if state is None:
            raise InputError(f"{self.trunk} has no checkpoint of epoch {self.epoch}")
        return state

    def copy_metrics(self, writer: RunWriter) -> None:
        """Start the fork's metrics with the trunk's."""
        there = len(Run(writer.path).metrics)
        for row in Run(self.trunk).metrics[there : self.epoch]:
            writer.append_metrics(row)


def milestone_path(folder: Path, epoch: int) -> Path:
    return folder / f"checkpoint-{epoch:04d}.pt"


def clear_milestones(folder: Path) -> None:
    """Remove the milestones of a run that is being replaced."""
    for file in folder.glob(milestone_path(folder, 0).name.replace("0000", "*")):
        file.unlink()


def load_checkpoint(folder: Path, name: str = NAME) -> dict[str, Any] | None:
    """The saved state, or None if the run stopped before its first checkpoint."""
    path = folder / name
    if not path.exists():
        return None
    try:
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # torch raises many kinds for a damaged file
        said = first_line(error).partition(". ")[0]  # the rest is advice for programmers
        raise CannotGoOn(folder, f"{path} cannot be read ({said})") from None


def fingerprint(data: LabelledData) -> str:
    """A hash of what a run trains on: the examples and their given labels."""
    digest = hashlib.sha256(data.train.labels.cpu().numpy().tobytes())
    for identity in data.train.ids:
        digest.update(identity.encode("utf-8", "backslashreplace") + b"\n")
    return digest.hexdigest()
