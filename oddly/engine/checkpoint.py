"""Save a run so that it can go on exactly where it stopped."""

from __future__ import annotations

import hashlib
import io
import time
from pathlib import Path
from typing import Any

import torch

from oddly.data.base import LabelledData
from oddly.errors import InputError
from oddly.records import replacing

NAME = "checkpoint.pt"
SECONDS_BETWEEN = 60.0


class Checkpointer:
    """One file, replaced at most once a minute, unless told that this epoch matters."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._last = time.monotonic()

    def due(self, urgent: bool = False) -> bool:
        return urgent or time.monotonic() - self._last >= SECONDS_BETWEEN

    def save(self, state: dict[str, Any]) -> None:
        """The old checkpoint stays until the new one is whole."""
        content = io.BytesIO()
        torch.save(state, content)  # straight into the file it would hide that a disk is full
        with replacing(self.path) as file:
            file.write(content.getbuffer())
        self._last = time.monotonic()

    def remove(self) -> None:
        """A finished run needs none."""
        self.path.unlink(missing_ok=True)


def load_checkpoint(folder: Path) -> dict[str, Any] | None:
    """The saved state, or None when the run stopped before its first checkpoint."""
    path = folder / NAME
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for a damaged file
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{path} cannot be read ({reason}); start again with --overwrite"
        ) from None
    return dict(state)


def fingerprint(data: LabelledData) -> str:
    """What a run trains on, in a few letters: which examples under which given labels."""
    digest = hashlib.sha256(data.train.labels.cpu().numpy().tobytes())
    for identity in data.train.ids:
        digest.update(identity.encode("utf-8", "backslashreplace") + b"\n")
    return digest.hexdigest()
