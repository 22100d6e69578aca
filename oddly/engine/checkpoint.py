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
QUICK = 0.6  # seconds that saving may take so often: 1 % of the time


class CannotGoOn(InputError):
    """A run whose saved state is of no use."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(f"{why}; start over with --overwrite")
        self.folder, self.why = folder, why


class Checkpointer:
    """One file, replaced at most once a minute, unless told that this epoch matters.

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
        """The old checkpoint stays until the new one is whole; a milestone gets a file to keep."""
        begun = time.monotonic()
        content = io.BytesIO()
        torch.save(state, content)  # straight into the file it would hide that a disk is full
        path = self.path if milestone is None else milestone_path(self.path.parent, milestone)
        with replacing(path) as file:
            file.write(content.getbuffer())
        if milestone is None:
            self._last = time.monotonic()
            self._took = self._last - begun

    def remove(self) -> None:
        """A finished run needs none."""
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Fork:
    """A run that takes over the first epochs of another, its trunk.

    Both must agree on everything up to there. The trunk's method must keep what the fork's needs:
    an `odd` that prunes late does so for one that prunes earlier.
    """

    trunk: Path
    epoch: int
    """Finished epochs taken over; the trunk kept this milestone."""

    def load(self) -> dict[str, Any]:
        state = load_checkpoint(self.trunk, milestone_path(self.trunk, self.epoch).name)
        if state is None:
            raise InputError(f"{self.trunk} has no checkpoint of epoch {self.epoch}")
        return state

    def copy_metrics(self, writer: RunWriter) -> None:
        """The fork's curve begins with the trunk's."""
        there = len(Run(writer.path).metrics)
        for row in Run(self.trunk).metrics[there : self.epoch]:
            writer.append_metrics(row)


def milestone_path(folder: Path, epoch: int) -> Path:
    return folder / f"checkpoint-{epoch:04d}.pt"


def clear_milestones(folder: Path) -> None:
    """Remove those of a run that is being replaced."""
    for file in folder.glob(milestone_path(folder, 0).name.replace("0000", "*")):
        file.unlink()


def load_checkpoint(folder: Path, name: str = NAME) -> dict[str, Any] | None:
    """The saved state, or None when the run stopped before its first checkpoint."""
    path = folder / name
    if not path.exists():
        return None
    try:
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # torch raises many kinds for a damaged file
        said = first_line(error).partition(". ")[0]  # what follows is advice to programmers
        raise CannotGoOn(folder, f"{path} cannot be read ({said})") from None


def fingerprint(data: LabelledData) -> str:
    """What a run trains on, in a few letters: which examples under which given labels."""
    digest = hashlib.sha256(data.train.labels.cpu().numpy().tobytes())
    for identity in data.train.ids:
        digest.update(identity.encode("utf-8", "backslashreplace") + b"\n")
    return digest.hexdigest()
