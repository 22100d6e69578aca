"""Progress in the terminal during a run, and the table at its end."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from oddly.engine.watch import Watcher
from oddly.errors import count, shown
from oddly.records import Run

QUIET = 5.0  # seconds of reading images, or of the first epoch, before the first line in a log
LONGEST_QUIET = 60.0  # seconds between later lines in a log
PACE_AFTER = 10.0  # seconds of steps from which to estimate the time of a run
LONG_RUN = 30.0  # minutes: for longer runs, print the estimate with advice
LONG_EPOCH = 15.0  # seconds: then the sweep after the last epoch is worth a note


class TerminalWatcher(Watcher):
    """A progress bar over all epochs with rate and remaining time; plain lines in a log file."""

    command = "train"

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress: Progress | None = None
        self.folder: Path | None = None
        self.where, self.last_saved = "", 0
        self.read_since: float | None = None
        self.read_before = self.tenth = 0
        self.told = self.begun = time.monotonic()  # time of the last line, and of the epoch's start
        self.patience = QUIET
        self.longest = 0.0  # seconds of the longest epoch
        self.paced_from = 0, self.begun  # steps of the epoch not counted in its pace, and their end
        self.pace_told = False

    def note(self, text: str) -> None:
        self.told = time.monotonic()
        self.console.print(f"  {shown(text)}", markup=False, highlight=False, soft_wrap=True)

    def how_to_go_on(self) -> str:
        """After Ctrl-C: the command that continues the run, and from where; empty without a run."""
        if self.folder is None:
            return ""
        how = "continue"
        if self.last_saved:
            how = f"continue after epoch {self.last_saved}"
        elif self.where:
            how = "no epoch is saved yet, so start over"
        command = f"oddly {self.command} --resume --out {shlex.quote(str(self.folder))}"
        return f"; {how} with: {command}"

    def reading(self, done: int, total: int) -> None:
        if not self.console.is_terminal:
            self._note_reading(done, total)
            return
        if self.progress is None:
            self._show("reading images", "", total, 0)
        assert self.progress
        self.progress.update(self.task, completed=done, total=total)
        if speed := self.progress.tasks[0].speed:
            self.progress.update(self.task, detail=f"{speed:,.0f} images/s")
        if done == total:
            self.end()

    def _note_reading(self, done: int, total: int) -> None:
        """In a log file: a line for each tenth, if it takes a while."""
        now = time.monotonic()
        if self.read_since is None:
            self.read_since, self.read_before = now, done
        tenth = 10 * done // max(1, total)
        if tenth > self.tenth and now - self.read_since > QUIET and done > self.read_before:
            rate = (done - self.read_before) / (now - self.read_since)
            left = f", {(total - done) / rate:,.0f} s left" if done < total else ""
            self.note(f"read {done:,} of {total:,} images, {rate:,.0f} per second{left}")
            self.tenth = tenth
        if done == total:  # the next images are timed separately
            self.read_since, self.tenth = None, 0

    def begin(self, title: str, folder: Path, epochs: int, finished: int) -> None:
        self.folder, self.epochs, self.last_saved = folder, epochs, finished
        self.patience, self.longest = QUIET, 0.0
        self.where, self.pace_told = "", False
        if self.console.is_terminal:
            self._show(title, "epochs · ", epochs, finished)
        else:
            self.note(
                f"{title}: {count(epochs, 'epoch')}" + (f", {finished} done" if finished else "")
            )

    def _show(self, title: str, unit: str, total: int, done: int) -> None:
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),  # a folder may be called [old]
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn(f"{unit}{{task.fields[detail]}}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=self.console,
            transient=True,
        )
        self.task = self.progress.add_task(shown(title), total=total, completed=done, detail="")
        self.progress.start()

    def begin_epoch(self, epoch: int, steps: int) -> None:
        self.where = f" in epoch {epoch}"
        self.share = 1 / max(steps, 1)  # share of an epoch that one step is
        self.epoch, self.steps, self.done, self.begun = epoch, steps, 0, time.monotonic()
        self.paced_from = 0, self.begun

    def step(self, examples: int) -> None:
        self.done += 1
        now = time.monotonic()
        if self.done == 1 and not self.longest:
            self.paced_from = 1, now  # the first step of a run may compile
        self._tell_pace()
        paced = self.done - self.paced_from[0]
        if self.progress:
            self.progress.advance(self.task, self.share)
        elif paced and now - self.told > self.patience:
            left = (now - self.paced_from[1]) / paced * (self.steps - self.done)
            at = f"step {self.done:,} of {self.steps:,}"
            self.note(f"epoch {self.epoch}/{self.epochs} · {at}, {left:,.0f} s left of this epoch")
            self.patience = LONGEST_QUIET

    def _tell_pace(self) -> None:
        """Estimate the time of the run once, in its first epoch."""
        steps_before, since = self.paced_from
        seconds = time.monotonic() - since
        if self.pace_told or self.longest or self.done < 3 or seconds < PACE_AFTER:
            return
        left = self.epochs - self.epoch + 1
        minutes = seconds / (self.done - steps_before) * self.steps * left / 60
        self.pace_told = True
        if minutes > LONG_RUN and self.command == "train":
            # No advice for a resumed run, which cannot be changed.
            advice = (
                "; use fewer --epochs or a smaller --model, or oddly clean for a"
                " dataset of image files, to save time"
            )
            what = count(left, "epoch" if self.epoch == 1 else "more epoch")
            told = f"at this rate, {what} will take about {minutes:,.0f} minutes"
            self.note(told + (advice if self.epoch == 1 else ""))

    def saved(self, epoch: int) -> None:
        self.last_saved = epoch

    def end_epoch(self, row: Mapping[str, Any]) -> None:
        self.patience = LONGEST_QUIET
        self.longest = max(self.longest, time.monotonic() - self.begun)
        self.where = f" after epoch {row['epoch']}"
        parts = [f"{row['images_per_second']:,.0f} examples/s"]
        if row["test_accuracy"] is not None:
            parts.insert(0, f"test {row['test_accuracy']:.2f} %")
        if self.progress:
            self.progress.update(self.task, completed=row["epoch"], detail=" · ".join(parts))
        elif row["epoch"] == self.epochs or row["epoch"] % max(1, self.epochs // 8) == 0:
            loss = f"loss {row['train_loss']:.3f}"
            self.note(f"epoch {row['epoch']}/{self.epochs} · {loss} · {' · '.join(parts)}")
        if row["epoch"] == self.epochs and self.longest > LONG_EPOCH:
            self.note("taking one last look at every image")

    def end(self) -> None:
        self.read_since, self.tenth = None, 0  # the next images are timed separately
        if self.progress:
            self.progress.stop()
            self.progress = None


def summary_table(runs: Sequence[Run]) -> Table:
    """The runs' figures, one row each."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("method")
    headers = ("test accuracy", "removed", "precision", "recall", "seconds", "denoising seconds")
    for header in headers:
        table.add_column(header, justify="right")
    for run in runs:
        s = run.summary
        table.add_row(
            s["method"],
            _format(s["test_accuracy"], "{:.2f} %"),
            _format(100 * s["removed_fraction"], "{:.1f} %"),
            _format(s.get("precision"), "{:.3f}"),
            _format(s.get("recall"), "{:.3f}"),
            _format(s["seconds"], "{:.1f}"),
            _format(s["denoise_seconds"], "{:.3f}"),
        )
    return table


def _format(value: float | None, pattern: str) -> str:
    return "–" if value is None else pattern.format(value)
