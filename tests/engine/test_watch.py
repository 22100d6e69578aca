from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from oddly.core import Counterfactual, judge
from oddly.core.learnt import LEARNT
from oddly.data import synthetic
from oddly.engine.api import train
from oddly.engine.loop import hardest_hit, name_few
from oddly.engine.watch import Watcher
from oddly.records import Run


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
        ("note", "erm has no setting 'percentile': ignored"),
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


def test_a_verdict_is_told(tmp_path: Path) -> None:
    diary = Diary()
    options: dict[str, Any] = {"counterfactual": "weights", "prune_after": 2, "noise": 0.4}
    run = train("synthetic", tmp_path, watcher=diary, epochs=3, **options)
    notes = [line[1] for line in diary.lines if line[0] == "note"]
    assert notes[0].startswith("epoch 2: ") and "69 of 120 examples removed" in notes[0]
    assert notes[1].startswith("69 of 120 are removed: unless most labels are wrong, the network")
    assert run.doubt is None  # since some came back
    assert re.match(r"after epoch 3: \d+ examples readmitted so far, \d+ stay", notes[2])
    assert len(notes) == 3


def digits_notes(folder: Path, epochs: int, noise: float = 0.4) -> tuple[Run, list[str]]:
    diary = Diary()
    options: dict[str, Any] = {"noise": noise, "device": "cpu", "epochs": epochs}
    run = train("digits", folder, watcher=diary, **options)
    return run, [line[1] for line in diary.lines if line[0] == "note"]


def test_a_network_that_has_hardly_learnt_is_told_of_once(tmp_path: Path) -> None:
    """Two epochs remove two thirds of the digits, most of them rightly labelled."""
    run, notes = digits_notes(tmp_path, epochs=2)
    assert run.summary["removed_fraction"] > 0.5 and run.summary["precision"] < 0.6
    assert notes[1] == run.summary["doubt"] and notes[1].startswith("the network has hardly learnt")
    assert run.summary["contrast"] < LEARNT
    assert not any("more than half" in note for note in notes)  # which would say it again
    assert run.doubt == notes[1].replace("the", "The", 1) + "." and "(.doubt)" in repr(run)


def test_a_network_that_has_learnt_is_not_doubted(tmp_path: Path) -> None:
    run, notes = digits_notes(tmp_path, epochs=10)
    assert run.summary["precision"] > 0.9 and run.summary["contrast"] > LEARNT
    assert run.summary["doubt"] is None and run.doubt is None
    assert not any("hardly" in note for note in notes)


def test_more_than_half_removed_is_told_of_though_it_is_believed(tmp_path: Path) -> None:
    run, notes = digits_notes(tmp_path, epochs=12, noise=0.7)
    assert run.doubt is None and run.summary["precision"] > 0.9
    assert sum(note.startswith("more than half are removed: unless most") for note in notes) == 1


def test_spared_classes_are_named(tmp_path: Path) -> None:
    """A class of three examples, all of whose labels are wrong, is kept and told of."""
    data = synthetic()
    labels = data.train.labels.clone()
    labels[labels == 2] = 0
    labels[(labels == 1).nonzero().flatten()[:3]] = 2
    diary = Diary()
    options: dict[str, Any] = {"counterfactual": "weights", "percentile": 1, "prune_after": 4}
    run = train(data.with_given_labels(labels), tmp_path, watcher=diary, epochs=4, **options)
    assert "class 2" in run.summary["spared_classes"]
    names = ", ".join(run.summary["spared_classes"])
    told = ("note", f"classes kept whole, too small or else emptied: {names}")
    assert told in diary.lines


def test_classes_that_lose_more_than_half_are_named_worst_first() -> None:
    """Six of class 0, six of class 1, eight of class 2, one never seen; threshold 5."""
    labels = torch.tensor([0] * 6 + [1] * 6 + [2] * 8 + [-1])
    losses = torch.tensor([9.0, 0, 0, 0, 0, 0] + [9.0] * 5 + [0] + [9.0] * 5 + [0] * 3 + [math.nan])
    counterfactual = Counterfactual.from_losses(torch.arange(11.0), "weights")
    verdict = judge(losses, labels, counterfactual, 50.0, 1, 4)
    assert hardest_hit(verdict, 4) == [(1, 5, 6), (2, 5, 8)]
    assert name_few(["a"] * 3) == "a, a, a" and name_few(["a"] * 7, 2) == "a, a and 5 more"


def test_a_class_of_mostly_wrong_labels_is_told_of(tmp_path: Path) -> None:
    """Sixty of class 0, of which 25 are called class 2, where only ten belong."""
    data = synthetic(per_class=60)
    of_class = data.train.labels == 2
    data = data.take(torch.cat(((~of_class).nonzero(), of_class.nonzero()[:10])).flatten())
    labels = data.train.labels.clone()
    labels[(labels == 0).nonzero().flatten()[:25]] = 2
    diary = Diary()
    options: dict[str, Any] = {"counterfactual": "weights", "prune_after": 3, "epochs": 4}
    train(data.with_given_labels(labels), tmp_path, watcher=diary, **options)
    notes = [line[1] for line in diary.lines if line[0] == "note"]
    told = re.compile(r"more than half are removed of class 2 \([23]\d of 35\).*: rare and hard")
    assert any(told.match(note) for note in notes)


def test_the_plain_watcher_listens_to_nothing(tmp_path: Path) -> None:
    run = train("synthetic", tmp_path, epochs=1, method="erm", watcher=Watcher())
    assert run.is_done and len(run.metrics) == 1
