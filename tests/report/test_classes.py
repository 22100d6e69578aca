from __future__ import annotations

import pandas as pd
import pytest

from oddly.report.classes import MATRIX_SIDE, count_classes, count_pairs, cut, name_classes
from tests.report.tables import make_verdicts

FIVE = make_verdicts(
    [0.0] * 5,
    given_label=[0, 0, 3, 3, 3],
    given_name=["cat", "cat", "emu", "emu", "emu"],
    suggested_label=[3, 0, 3, -1, 1],
    suggested_name=["emu", "cat", "emu", None, "dog"],
    keep=[True, False, False, False, False],
)


def test_names_of_every_label() -> None:
    assert name_classes(FIVE) == {0: "cat", 1: "dog", 3: "emu"}
    assert name_classes(make_verdicts([1.0], given_name=[None])) == {0: "0", 1: "dog"}


def test_classes_worked_by_hand() -> None:
    verdicts = FIVE.assign(keep=[True, True, False, True, True])
    truth = pd.DataFrame({"mislabelled": [True, False, True, True, False]})
    metrics = [
        {"epoch": 1},
        {"epoch": 2, "test_accuracy_by_class": [50.0, 10.0, None, 70.0]},
        {"epoch": 3, "test_accuracy_by_class": [60.0, 20.0, None, 80.0]},
    ]
    emu, cat = count_classes(verdicts, truth, name_classes(verdicts), metrics)
    assert (emu.label, emu.name, emu.examples, emu.removed, emu.mislabelled) == (3, "emu", 3, 1, 2)
    assert (cat.label, cat.name, cat.examples, cat.removed, cat.mislabelled) == (0, "cat", 2, 0, 1)
    assert emu.share == pytest.approx(100 / 3)
    assert (emu.accuracy_before, emu.accuracy_after) == (70, 80)
    assert (cat.accuracy_before, cat.accuracy_after) == (50, 60)


def test_one_accuracy_by_class_is_the_last() -> None:
    names = name_classes(FIVE)
    metrics = [{"epoch": 9, "test_accuracy_by_class": [1.0]}]  # fewer classes than labels
    emu, cat = count_classes(FIVE, None, names, metrics)
    assert (cat.accuracy_before, cat.accuracy_after) == (None, 1)
    assert (emu.accuracy_before, emu.accuracy_after) == (None, None)
    assert emu.mislabelled is None


def test_pairs_worked_by_hand() -> None:
    matrix = count_pairs(FIVE, name_classes(FIVE))
    assert matrix is not None
    assert (matrix.labels, matrix.names) == ([0, 1, 3], ["cat", "dog", "emu"])
    # removed: cat → cat, emu → emu, emu → nothing, emu → dog
    assert matrix.counts == [[1, 0, 0], [0, 0, 0], [0, 1, 1]]
    assert (matrix.most, matrix.left_out) == (1, 0)
    assert count_pairs(FIVE.assign(keep=True), {0: "cat"}) is None


def test_of_many_classes_those_with_most_suspects_are_in_the_matrix() -> None:
    n = 100
    given = [k for k in range(n) for _ in range(3 if k >= 80 else 1)]
    verdicts = make_verdicts(
        [1.0] * len(given),
        given_label=given,
        given_name=[f"c{k}" for k in given],
        suggested_label=given,
        suggested_name=[f"c{k}" for k in given],
        keep=[False] * len(given),
    )
    matrix = count_pairs(verdicts, name_classes(verdicts))
    assert matrix is not None and MATRIX_SIDE == 20
    assert matrix.labels == list(range(80, 100))
    assert matrix.left_out == 80 and sum(map(sum, matrix.counts)) == 60


def test_long_names_are_cut_in_the_middle() -> None:
    assert cut("a" * 200) == "a" * 200
    name = cut("x" * 500 + "/end.png")
    assert len(name) == 200 and name.endswith("x/end.png") and "…" in name
