"""What a run tells of its verdict."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import torch

from oddly.core import Counterfactual, judge
from oddly.core.sentinels.learnt import LEARNT, NOTHING
from oddly.data import synthetic
from oddly.engine.api import train
from oddly.engine.notice import hardest_hit, tell_verdict
from oddly.engine.watch import Watcher
from oddly.methods import Judgement
from oddly.records import Run


class Notes(Watcher):
    """Writes down what a user would read."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def test_a_verdict_is_told(tmp_path: Path) -> None:
    notes = Notes()
    options: dict[str, Any] = {"counterfactual": "weights", "prune_after": 2, "noise": 0.4}
    run = train("synthetic", tmp_path, watcher=notes, epochs=3, **options)
    assert notes.lines[0].startswith("epoch 2: ")
    assert "69 of 120 examples removed" in notes.lines[0]
    assert notes.lines[1].startswith(
        "69 of 120 examples are removed: unless most labels are wrong, the"
    )
    assert run.doubt is None  # since some came back
    assert re.match(r"after epoch 3: \d+ examples? readmitted so far, \d+ still", notes.lines[2])
    assert len(notes.lines) == 3


def digits_notes(folder: Path, **options: Any) -> tuple[Run, list[str]]:
    notes = Notes()
    run = train("digits", folder, watcher=notes, noise=0.4, device="cpu", **options)
    return run, notes.lines


def test_a_network_that_has_learnt_nothing_removes_nothing(tmp_path: Path) -> None:
    """Two epochs would remove half of the digits, most of them rightly labelled."""
    run, notes = digits_notes(tmp_path, epochs=2)
    assert run.summary["removed"] == 0 and run.summary["contrast"] < NOTHING
    assert "do not trust this verdict: nothing is removed;" in notes[1]


def test_a_network_that_has_hardly_learnt_is_told_of_once(tmp_path: Path) -> None:
    """Three slow epochs remove half of the digits, nearly half of them rightly labelled."""
    run, notes = digits_notes(tmp_path, epochs=3, learning_rate=0.02)
    assert run.summary["removed_fraction"] > 0.5 and run.summary["precision"] < 0.6
    assert notes[1].startswith("the network has hardly learnt")
    numbers = re.compile(r"[\d,.]*\d")  # at the end there are others: later looks re-admit some
    assert numbers.sub("", notes[1]) == numbers.sub("", run.summary["doubt"])
    assert run.summary["contrast"] < LEARNT
    assert not any("more than half" in note for note in notes)  # which would say it again
    assert run.doubt == run.summary["doubt"].replace("the", "The", 1) + "."
    assert "(.doubt)" in repr(run)


def test_a_network_that_has_learnt_is_not_doubted(tmp_path: Path) -> None:
    run, notes = digits_notes(tmp_path, epochs=10)
    assert run.summary["precision"] > 0.9 and run.summary["contrast"] > LEARNT
    assert run.summary["doubt"] is None and run.doubt is None
    assert not any("hardly" in note for note in notes)


def test_more_than_half_removed_is_told_of_though_it_is_believed() -> None:
    losses = torch.tensor([0.0, 0.0, 9.0, 9.0, 9.0]).repeat(2)
    random = Counterfactual.from_losses(torch.arange(11.0), "sentinels")
    verdict = judge(losses, torch.tensor([0, 1]).repeat_interleave(5), random, 50.0, 1, 2)
    judgement = Judgement.by_mask(verdict.keep, losses, 1, "some rule")
    _, told = tell_verdict(verdict, ("a", "b"))
    assert verdict.tell_doubt() is None and told.startswith(
        "more than half of the examples are removed: unless"
    )
    assert told.endswith("to judge; train longer, or raise the percentile")
    _, told = tell_verdict(judgement, ("a", "b"))
    assert told.endswith("to judge; train longer")  # it has no percentile


def test_spared_classes_are_named(tmp_path: Path) -> None:
    """A class of three examples, all of whose labels are wrong, is kept and told of."""
    data = synthetic()
    labels = data.train.labels.clone()
    labels[labels == 2] = 0
    labels[(labels == 1).nonzero().flatten()[:3]] = 2
    notes = Notes()
    options: dict[str, Any] = {"counterfactual": "weights", "percentile": 1, "prune_after": 4}
    run = train(data.with_given_labels(labels), tmp_path, watcher=notes, epochs=4, **options)
    assert "class 2" in run.summary["spared_classes"]
    names = ", ".join(run.summary["spared_classes"])
    assert f"classes kept whole because they are small or would be emptied: {names}" in notes.lines


def test_classes_that_lose_more_than_half_are_named_worst_first() -> None:
    """Six of class 0, six of class 1, eight of class 2, one never seen; threshold 5."""
    labels = torch.tensor([0] * 6 + [1] * 6 + [2] * 8 + [-1])
    losses = torch.tensor([9.0, 0, 0, 0, 0, 0] + [9.0] * 5 + [0] + [9.0] * 5 + [0] * 3 + [math.nan])
    counterfactual = Counterfactual.from_losses(torch.arange(11.0), "weights")
    verdict = judge(losses, labels, counterfactual, 50.0, 1, 4)
    assert hardest_hit(verdict, 4) == [(1, 5, 6), (2, 5, 8)]


def test_of_many_classes_hit_five_are_named_and_stay_on_their_line() -> None:
    """Six classes of five lose three each; the seventh keeps all of its thirty."""
    labels = torch.cat((torch.arange(6).repeat_interleave(5), torch.full((30,), 6)))
    losses = torch.tensor([9.0, 9, 9, 0, 0]).repeat(6)
    counterfactual = Counterfactual.from_losses(torch.arange(11.0), "weights")
    verdict = judge(torch.cat((losses, torch.zeros(30))), labels, counterfactual, 50.0, 1, 7)
    *_, told = tell_verdict(verdict, ["a\n", *"bcdefg"])
    named = ", ".join(f"{name} (3 of 5)" for name in ("a\\n", *"bcde"))
    assert told.startswith(
        f"more than half are removed in {named}, …: verdicts on rare and hard classes"
    )
    copies = torch.where(labels < 5, torch.zeros(60, dtype=torch.int64), -1)  # all of a to e
    assert hardest_hit(verdict, 7, copies) == [(5, 3, 5)]
    *_, told = tell_verdict(verdict, "abcdefg", copies)
    assert told.startswith("more than half are removed in f (3 of 5): ")


def test_a_class_of_mostly_wrong_labels_is_told_of(tmp_path: Path) -> None:
    """Sixty of class 0, of which 25 are called class 2, where only ten belong."""
    data = synthetic(per_class=60)
    of_class = data.train.labels == 2
    data = data.take(torch.cat(((~of_class).nonzero(), of_class.nonzero()[:10])).flatten())
    labels = data.train.labels.clone()
    labels[(labels == 0).nonzero().flatten()[:25]] = 2
    notes = Notes()
    options: dict[str, Any] = {"counterfactual": "weights", "prune_after": 3, "epochs": 4}
    train(data.with_given_labels(labels), tmp_path, watcher=notes, **options)
    told = re.compile(
        r"more than half are removed in class 2 \([23]\d of 35\).*: verdicts on rare and hard"
    )
    assert any(told.match(note) for note in notes.lines)


def test_labels_that_went_wrong_by_a_rule_are_told_of_with_names(tmp_path: Path) -> None:
    """Two fifths of every class of digits are called the next one."""
    notes = Notes()
    options: dict[str, Any] = {"noise": 0.4, "noise_kind": "pair", "device": "cpu", "epochs": 10}
    run = train("digits", tmp_path, watcher=notes, **options)
    assert notes.lines[1].startswith("labels seem to be systematically wrong: ")
    assert "(9 among 0, 0 among 1, 1 among 2, …)" in notes.lines[1]
    assert run.summary["by_rule"] == notes.lines[1] and ["1", "0"] in run.summary["one_way"]
    assert run.notes[0] == f"L{notes.lines[1][1:]}."
    assert run.summary["precision"] > 0.9 and run.summary["recall"] > 0.6
    suspects = run.verdicts[~run.verdicts["keep"]]
    assert suspects["counterfactual_percentile"].isna().mean() > 0.5  # found by the rule alone
