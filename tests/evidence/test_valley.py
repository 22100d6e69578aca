"""The same training judged with the valley and without."""

from __future__ import annotations

import json
from unittest import mock

import pytest

from evidence import valley
from evidence.again import RESULTS, Row
from evidence.engine_runs import judge_twice
from evidence.figures import COMPARED
from evidence.valley import stay
from oddly.core.sentinels import cut

ROWS = json.loads((RESULTS / "valley_digits.json").read_text())["rows"]


def test_a_row_has_what_is_stored() -> None:
    usual = cut.lower_into_valley
    name: Row = {"labels": "pair 20 %", "network": "ResNet-8", "seed": 0}
    (stored,) = [row for row in ROWS if name.items() <= row.items()]
    row = name | valley.make_row("pair", 20, "ResNet-8", 0)
    assert list(row) == list(stored) and row["wrong"] == stored["wrong"]
    for which in ("without", "with"):
        assert list(row[which]) == list(stored[which]) == list(COMPARED)
        assert row[which]["f1"] == pytest.approx(stored[which]["f1"], abs=0.1)
    assert row["with"]["f1"] > row["without"]["f1"]
    assert row["best_f1"] >= row["with"]["f1"]
    assert cut.lower_into_valley is usual  # put back


def test_both_verdicts_are_by_the_same_scores() -> None:
    """Scores are shifted in place by a judgement: the second must not see those of the first."""
    short = valley.NETWORKS["ResNet-8"] | {"epochs": 3}
    data, no_valley = valley.load("pair", 20, 0), mock.patch.object(cut, "lower_into_valley", stay)
    (verdict, wrong, _), without = judge_twice(data, no_valley, seed=0, **short)
    assert verdict.scores.equal(without.scores)
    assert verdict.scores is not without.scores
    assert wrong.sum() == round(0.2 * len(wrong))
    assert without.keep[verdict.keep].all()  # the valley only adds to what goes


def test_every_training_is_stored() -> None:
    named = [name for name, _ in valley.cells()]
    assert named == [{key: row[key] for key in ("labels", "network", "seed")} for row in ROWS]
