"""The same training judged with labels wrong by a rule looked for, and not."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from evidence import one_way
from evidence.again import RESULTS
from oddly.core import judging
from tests.evidence.made import blobs

ROWS = json.loads((RESULTS / "one_way.json").read_text())["rows"]


@pytest.mark.parametrize("kind", ["next 40", "permuted 40", "reversed 40"])
def test_labels_are_wrong_by_one_rule_for_a_class(kind: str) -> None:
    images = blobs(2_000)
    given = one_way.give_labels(images, kind)
    wrong = given != images.true
    assert 0.2 < wrong.mean() < 0.6
    called = {(true, label) for true, label in zip(images.true[wrong], given[wrong], strict=True)}
    assert len(called) == len({true for true, _ in called})
    if kind == "next 40":
        assert np.array_equal(given[wrong], (images.true[wrong] + 1) % images.classes)
    if kind == "reversed 40":
        assert np.array_equal(given[wrong], images.classes - 1 - images.true[wrong])


def test_a_row_has_what_is_stored() -> None:
    usual = judging.find_one_way
    row = one_way.judge_head("made", "next 20", None, {"made": partial(blobs, 2_000)})
    (stored,) = [r for r in ROWS if r["images"] == "CIFAR-10" and r["labels"] == "next 20 %"]
    assert ["images", "labels", *row] == list(stored)
    assert row["one_way"] and row["with"]["f1"] >= row["without"]["f1"]
    assert judging.find_one_way is usual  # put back


def test_every_training_is_stored() -> None:
    named = [name for name, _ in one_way.cells({})]
    keys = [[key for key in ("images", "labels", "seed") if key in row] for row in ROWS]
    assert named == [{k: row[k] for k in these} for row, these in zip(ROWS, keys, strict=True)]
