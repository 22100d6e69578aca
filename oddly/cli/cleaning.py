"""The terminal during `oddly clean`: settings, then progress, then findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from oddly.clean import Choice, CleanWatcher
from oddly.errors import shown
from oddly.records import Run
from oddly.terminal import TerminalWatcher


class CleanTerminal(TerminalWatcher, CleanWatcher):
    """Prints the chosen settings before the progress bars, the findings before exports."""

    command = "clean"

    def __init__(self, console: Console, show: Callable[[Run], None]) -> None:
        super().__init__(console)
        self.show = show
        self.unshown: OSError | SystemExit | None = None

    def chosen(self, choices: Sequence[Choice], folder: Path) -> None:
        self.folder = folder
        table = Table(box=None, show_header=False, pad_edge=False)
        for choice in choices:
            table.add_row(choice.name, shown(choice.value), choice.reason, style=None)
        self.console.print(table, highlight=False, markup=False)

    def judged(self, run: Run) -> None:
        try:
            self.show(run)
        except (OSError, SystemExit) as error:  # closed pipe: still write copy and exports
            self.unshown = error
