"""How cleaning tells somebody what it is doing; by default nobody listens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oddly.clean.settings import Choice
from oddly.engine.watch import Watcher
from oddly.records import Run


class CleanWatcher(Watcher):
    """The training loop's hooks, and two more."""

    def chosen(self, choices: Sequence[Choice], folder: Path) -> None:
        """What will be done, and why; from now on the run can be resumed."""

    def judged(self, run: Run) -> None:
        """Every label is judged; copies and exports come next."""
