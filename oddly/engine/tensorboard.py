"""The optional TensorBoard log inside a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oddly.errors import InputError

FOLDER = "tensorboard"


class TensorBoardLog:
    """Writes the numbers of metrics.jsonl to TensorBoard as well."""

    def __init__(self, run_folder: Path, finished: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # What an interrupted run wrote after its last checkpoint is not shown.
        self._log = SummaryWriter(str(run_folder / FOLDER), purge_step=finished + 1)

    def add(self, row: Mapping[str, Any]) -> None:
        """One epoch's row of metrics."""
        for name, value in row.items():
            if name != "epoch" and isinstance(value, (int, float)):
                self._log.add_scalar(name, value, row["epoch"])
        self._log.flush()

    def close(self) -> None:
        self._log.close()


def check_tensorboard() -> None:
    """Say what to install before anything is written."""
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        raise InputError(
            'the TensorBoard log needs an extra: pip install "oddly[tensorboard]"'
        ) from None


def clear_log(run_folder: Path) -> None:
    """Remove the log of a run that is being replaced."""
    for file in (run_folder / FOLDER).glob("events.out.tfevents.*"):
        file.unlink()
