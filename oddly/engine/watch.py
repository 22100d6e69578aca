"""How the loop tells somebody what it is doing; by default nobody listens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oddly.errors import InputError


class Watcher:
    """Hooks that all do nothing; the command line draws progress bars with them."""

    def note(self, text: str) -> None:
        """Something the user should read."""

    def begin(self, title: str, epochs: int, finished: int) -> None:
        """Training starts, `finished` epochs are already done."""

    def begin_epoch(self, epoch: int, steps: int) -> None:
        """Epoch `epoch` (from 1) starts."""

    def step(self, examples: int) -> None:
        """One step is done."""

    def end_epoch(self, row: Mapping[str, Any]) -> None:
        """An epoch is done; `row` is its line in metrics.jsonl."""

    def end(self) -> None:
        """Training is over, also when it failed."""


class TensorBoardWatcher(Watcher):
    """Passes everything on, and each epoch's numbers to a TensorBoard log as well."""

    def __init__(self, inner: Watcher, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise InputError(
                'the TensorBoard log needs an extra: pip install "oddly[tensorboard]"'
            ) from None
        self.inner, self.log = inner, SummaryWriter(str(folder))

    def note(self, text: str) -> None:
        self.inner.note(text)

    def begin(self, title: str, epochs: int, finished: int) -> None:
        self.inner.begin(title, epochs, finished)

    def begin_epoch(self, epoch: int, steps: int) -> None:
        self.inner.begin_epoch(epoch, steps)

    def step(self, examples: int) -> None:
        self.inner.step(examples)

    def end_epoch(self, row: Mapping[str, Any]) -> None:
        self.inner.end_epoch(row)
        for name, value in row.items():
            if name != "epoch" and value is not None:
                self.log.add_scalar(name, value, row["epoch"])

    def end(self) -> None:
        self.log.close()
        self.inner.end()
