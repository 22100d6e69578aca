"""What a person sees, on a terminal and in a log file."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from oddly.engine.api import train
from oddly.terminal import TerminalWatcher, summary_table

ROW: dict[str, Any] = {
    "epoch": 1,
    "images_per_second": 1234.0,
    "test_accuracy": 87.5,
    "train_loss": 0.5,
}


def make(terminal: bool) -> tuple[TerminalWatcher, io.StringIO]:
    text = io.StringIO()
    return TerminalWatcher(Console(file=text, force_terminal=terminal, width=120)), text


def plain(text: io.StringIO) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.getvalue())


def test_a_file_gets_plain_lines() -> None:
    watcher, text = make(terminal=False)
    watcher.reading(5, 10)
    watcher.begin("odd on digits", Path("run"), 16, 4)
    for epoch in range(5, 17):
        watcher.begin_epoch(epoch, 3)
        watcher.step(64)
        watcher.end_epoch({**ROW, "epoch": epoch})
    watcher.end()
    lines = text.getvalue().splitlines()
    assert lines[0] == "  odd on digits: 16 epochs, 4 done"
    assert lines[1] == "  epoch 6/16 · loss 0.500 · test 87.50 % · 1,234 examples/s"
    assert lines[-1].startswith("  epoch 16/16") and len(lines) == 7  # every eighth of the run


def test_a_long_first_epoch_and_the_sweep_at_the_end_are_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("oddly.terminal.time.monotonic", lambda: now)
    watcher, text = make(terminal=False)
    watcher.begin("odd on cifar10", Path("run"), 16, 0)
    for epoch in range(1, 17):
        watcher.begin_epoch(epoch, 10)
        for _ in range(10):
            now += 4
            watcher.step(64)
        watcher.end_epoch({**ROW, "epoch": epoch})
    lines = [line.strip() for line in text.getvalue().splitlines()]
    assert lines[:4] == [
        "odd on cifar10: 16 epochs",
        "epoch 1/16 · step 2 of 10, 32 s left of this epoch",  # after eight seconds
        "epoch 2/16 · step 8 of 10, 8 s left of this epoch",  # after a minute of nothing
        "epoch 2/16 · loss 0.500 · test 87.50 % · 1,234 examples/s",
    ]
    assert lines[-1] == "taking one last look at every image"


def test_the_time_left_leaves_out_a_first_step_that_compiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("oddly.terminal.time.monotonic", lambda: now)
    watcher, text = make(terminal=False)
    watcher.begin("odd on cifar10", Path("run"), 200, 0)
    watcher.begin_epoch(1, 391)
    for seconds in (22.0, 0.1):
        now += seconds
        watcher.step(64)
    assert text.getvalue().splitlines()[1:] == [
        "  epoch 1/200 · step 2 of 391, 39 s left of this epoch"
    ]


@pytest.mark.parametrize(("seconds", "told"), [(4.0, True), (0.5, False)])
def test_who_will_wait_long_is_told_so_once(
    seconds: float, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 s x 43 steps x 30 epochs are 86 minutes; a first step that compiles does not count."""
    now = 0.0
    monkeypatch.setattr("oddly.terminal.time.monotonic", lambda: now)
    watcher, text = make(terminal=False)
    watcher.begin("odd on photos", Path("run"), 30, 0)
    for epoch in (1, 2):
        watcher.begin_epoch(epoch, 43)
        for step in range(43):
            now += 100 * seconds if step == 0 else seconds
            watcher.step(64)
        watcher.end_epoch({**ROW, "epoch": epoch})
    pace = [line for line in text.getvalue().splitlines() if "at this rate" in line]
    assert len(pace) == told
    assert all(
        "at this rate, 30 epochs will take about 86 minutes; use fewer --epochs" in p for p in pace
    )


def test_who_goes_on_is_told_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("oddly.terminal.time.monotonic", lambda: now)
    watcher, text = make(terminal=False)
    watcher.begin("odd on photos", Path("run"), 200, 150)
    watcher.begin_epoch(151, 100)
    for _ in range(10):
        now += 4
        watcher.step(64)
    assert "at this rate, 50 more epochs will take about 333 minutes\n" in text.getvalue()


def test_one_epoch_is_no_plural() -> None:
    watcher, text = make(terminal=False)
    watcher.begin("odd on digits", Path("run"), 1, 0)
    assert text.getvalue() == "  odd on digits: 1 epoch\n"


def test_each_reading_has_a_pace_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several runs in turn share a watcher: the seconds between them are nobody's reading."""
    watcher, text = make(terminal=False)
    now = 0.0
    monkeypatch.setattr("oddly.terminal.time.monotonic", lambda: now)
    for later, done in ((0.0, 0), (10.0, 100), (500.0, 0), (501.0, 10), (510.0, 100)):
        now = later
        watcher.reading(done, 100)
    read = "  read 100 of 100 images, 10 per second"
    assert text.getvalue().splitlines() == [read, read]


def test_a_terminal_gets_a_bar() -> None:
    watcher, text = make(terminal=True)
    watcher.begin("odd on digits", Path("run"), 2, 0)
    watcher.begin_epoch(1, 2)
    watcher.step(64)
    watcher.end_epoch({**ROW, "test_accuracy": None})
    watcher.end()
    assert "odd on digits" in plain(text) and "1/2" in plain(text)
    assert "1,234 examples/s" in plain(text) and "test" not in plain(text)


def test_reading_images_has_a_bar_that_goes() -> None:
    watcher, text = make(terminal=True)
    watcher.reading(32, 64)
    watcher.reading(64, 64)
    assert "reading images" in plain(text) and watcher.progress is None
    watcher.begin("odd on photos", Path("run"), 2, 0)
    watcher.end()


@pytest.mark.parametrize(
    ("folder", "command"),
    [("runs/a", "--out runs/a"), ("my runs/a", "--out 'my runs/a'")],
)
def test_how_to_go_on(folder: str, command: str) -> None:
    watcher, _ = make(terminal=False)
    assert watcher.how_to_go_on() == ""
    watcher.begin("odd on digits", Path(folder), 2, 0)
    assert watcher.how_to_go_on() == f"; continue with: oddly train --resume {command}"


def test_how_much_is_saved() -> None:
    watcher, _ = make(terminal=False)

    def told() -> str:
        return watcher.where + watcher.how_to_go_on().partition(" with: ")[0]

    watcher.begin("odd on digits", Path("run"), 9, 0)
    watcher.begin_epoch(1, 2)
    assert told() == " in epoch 1; no epoch is saved yet, so start over"
    watcher.saved(1)
    watcher.end_epoch(ROW)
    assert told() == " after epoch 1; continue after epoch 1"
    watcher.begin_epoch(2, 2)
    assert told() == " in epoch 2; continue after epoch 1"
    watcher.begin("odd on digits", Path("run"), 9, 4)  # resumed
    watcher.begin_epoch(5, 2)
    assert told() == " in epoch 5; continue after epoch 4"


def test_markup_in_a_note_is_text() -> None:
    watcher, text = make(terminal=False)
    watcher.note("[bold]class[/bold]")
    assert text.getvalue() == "  [bold]class[/bold]\n"


def test_what_is_unknown_is_a_dash(tmp_path: Path) -> None:
    run = train("synthetic", tmp_path, method="erm", epochs=1)
    console = Console(file=io.StringIO(), width=120)
    console.print(summary_table([run]))
    assert isinstance(console.file, io.StringIO)
    header, row = console.file.getvalue().splitlines()
    assert header.split()[:3] == ["method", "test", "accuracy"]
    assert row.split()[0] == "erm" and row.split()[5:7] == ["–", "–"]  # precision, recall
