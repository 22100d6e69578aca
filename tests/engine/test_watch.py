from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oddly.engine.api import train
from oddly.engine.watch import Watcher


class Diary(Watcher):
    """Writes down everything it is told."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []

    def note(self, text: str) -> None:
        self.lines.append(("note", text))

    def reading(self, done: int, total: int) -> None:
        self.lines.append(("reading", done, total))

    def begin(self, title: str, folder: Path, epochs: int, finished: int) -> None:
        self.lines.append(("begin", title, folder, epochs, finished))

    def begin_epoch(self, epoch: int, steps: int) -> None:
        self.lines.append(("begin_epoch", epoch, steps))

    def step(self, examples: int) -> None:
        self.lines.append(("step", examples))

    def saved(self, epoch: int) -> None:
        self.lines.append(("saved", epoch))

    def end_epoch(self, row: Mapping[str, Any]) -> None:
        self.lines.append(("end_epoch", row["epoch"], row["kept"]))

    def end(self) -> None:
        self.lines.append(("end",))


def test_a_watcher_hears_everything_in_order(tmp_path: Path) -> None:
    diary = Diary()
    options: dict[str, Any] = {"method": "erm", "epochs": 2, "batch_size": 50, "percentile": 3}
    train("synthetic", tmp_path, watcher=diary, **options)
    epoch = [("step", 50), ("step", 50), ("step", 20)]
    assert diary.lines == [
        ("note", "ignored setting 'percentile': erm has no such setting"),
        ("begin", "erm on synthetic", tmp_path, 2, 0),
        *[("begin_epoch", 1, 3), *epoch, ("end_epoch", 1, 120)],
        *[("begin_epoch", 2, 3), *epoch, ("end_epoch", 2, 120)],
        ("end",),
    ]


def test_a_checkpoint_is_told(tmp_path: Path) -> None:
    diary = Diary()
    train("synthetic", tmp_path, watcher=diary, epochs=3, prune_after=2)  # saved with its verdict
    told = [line for line in diary.lines if line[0] in ("saved", "end_epoch")]
    assert [line[:2] for line in told] == [
        *[("end_epoch", 1), ("saved", 2), ("end_epoch", 2), ("end_epoch", 3)]
    ]


def test_the_plain_watcher_listens_to_nothing(tmp_path: Path) -> None:
    run = train("synthetic", tmp_path, epochs=1, method="erm", watcher=Watcher())
    assert run.is_done and len(run.metrics) == 1
