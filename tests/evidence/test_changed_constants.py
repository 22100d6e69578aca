"""One constant changed at a time: the verdict moves, and everything is put back."""

from __future__ import annotations

import json
from unittest import mock

import pytest

from evidence import changed_constants
from evidence.again import RESULTS
from evidence.changes import DECAY, EPOCHS, JUDGING, USUAL, changed
from evidence.recorded_cases import Case
from oddly.core import judging
from oddly.core.ledger import LossLedger
from oddly.core.rule import PERCENTILES
from oddly.core.sentinels import cut, learnt, one_way, planting
from tests.evidence.made import blobs

ROWS = json.loads((RESULTS / "changed_constants.json").read_text())["rows"]


def test_what_is_stored_is_what_the_script_makes() -> None:
    named = [name for name, _ in changed_constants.cells({})]
    assert [{"case": row["case"]} for row in ROWS] == named
    changes = {
        f"{name} = {value:.3g}"
        for name, values in {**EPOCHS, **JUDGING}.items()
        for value in values
    }
    assert all(set(row["changed"]) <= changes for row in ROWS)


def test_a_constant_is_changed_wherever_it_is_used() -> None:
    with changed("sentinels.cut.SHALLOW", 0.5):
        assert cut.SHALLOW == one_way.SHALLOW == 0.5
    with changed("sentinels.learnt.SURE", 9.5):
        assert (learnt.SURE, judging.SURE, planting.SURE) == (9.5, 9.5, 8.5)
    with changed(USUAL, 3):
        assert PERCENTILES["sentinels"] == 3
    with changed(DECAY, 0.5):
        assert LossLedger(1).decay == 0.5
    assert cut.SHALLOW == one_way.SHALLOW == 0.8 and judging.SURE == 8.5
    assert PERCENTILES["sentinels"] == 6 and LossLedger(1).decay == 0.9


def test_a_recorded_head() -> None:
    case, few = (
        Case("blobs", "aggregate", "small"),
        {DECAY: (0.5,), "sentinels.planting.FALLEN": (0.99,)},
    )
    some = {"sentinels.learnt.NOTHING": (30.0,), "sentinels.cut.SHALLOW": (0.8,)}
    with mock.patch.multiple(changed_constants, EPOCHS=few, JUDGING=some):
        row = changed_constants.row_of_head(case, {"small": lambda: blobs(1_500)})
    assert set(row) == set(ROWS[0]) - {"case"} and set(row["now"]) == set(ROWS[0]["now"])
    assert row["now"]["f1"] > 0.6
    assert row["changed"]["sentinels.planting.FALLEN = 0.99"]["epoch"] < row["now"]["epoch"]
    assert row["changed"]["sentinels.learnt.NOTHING = 30"]["removed"] == 0
    assert "sentinels.cut.SHALLOW = 0.8" not in row["changed"]  # what it is already


def test_digits() -> None:
    some = {"sentinels.confusion.STRENGTH": (3.0,), "sentinels.learnt.NOTHING": (30.0,)}
    with mock.patch.object(changed_constants, "JUDGING", some):
        row = changed_constants.row_of_digits("uniform 40", {"epochs": 6})
    (stored,) = [one for one in ROWS if one["case"] == "digits, uniform 40 %, WRN-10-2"]
    assert row["wrong"] == pytest.approx(stored["wrong"])
    assert row["changed"]["sentinels.learnt.NOTHING = 30"]["removed"] == 0
