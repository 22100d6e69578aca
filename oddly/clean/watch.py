"""Hooks to follow `oddly clean`; by default they do nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oddly.clean.settings import Choice
from oddly.engine.watch import Watcher
from oddly.records import Run


class CleanWatcher(Watcher):
    """The training loop's hooks, and two more."""

    def chosen(self, choices: Sequence[Choice], folder: Path) -> None:
        """The settings are chosen; from now on the run can be resumed."""

    def judged(self, run: Run) -> None:
        """Every label is judged; copies and exports come next."""
