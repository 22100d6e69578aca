"""Save a run so that it can go on exactly where it stopped."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch

from oddly.errors import InputError
from oddly.records import replacing

NAME = "checkpoint.pt"
SECONDS_BETWEEN = 60.0


class Checkpointer:
    """Writes at most once a minute, unless told that this epoch matters."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._last = time.monotonic()

    def save(self, state: dict[str, Any], urgent: bool = False) -> bool:
        """True when written. The old checkpoint stays until the new one is whole."""
        if not urgent and time.monotonic() - self._last < SECONDS_BETWEEN:
            return False
        with replacing(self.path) as file:
            torch.save(state, file)
        self._last = time.monotonic()
        return True

    def remove(self) -> None:
        """A finished run needs none."""
        self.path.unlink(missing_ok=True)


def load_checkpoint(folder: Path, device: torch.device) -> dict[str, Any] | None:
    """The saved state, or None when the run stopped before its first checkpoint."""
    path = folder / NAME
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # torch raises many kinds for a damaged file
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{path} cannot be read ({reason}); start again with --overwrite"
        ) from None
    return dict(state)
