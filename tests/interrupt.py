"""For tests of runs that are broken off and go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oddly.engine.watch import Watcher


class StopAfter(Watcher):
    """Ctrl-C once an epoch is over, and saved if it was to be."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def end_epoch(self, row: Mapping[str, Any]) -> None:
        if row["epoch"] == self.epoch:
            raise KeyboardInterrupt
