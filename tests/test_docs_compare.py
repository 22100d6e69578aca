"""docs/compare.md says what the stored comparison and costs hold, and names every method."""

from __future__ import annotations

from statistics import mean, stdev

import pytest

from oddly.compare import markdown
from oddly.compare.table import FIGURES
from oddly.methods import METHODS
from tests.test_docs import ROOT, rows, stored

PAGE = "docs/compare.md"


COMPARISONS = sorted(file.name for file in (ROOT / "oddly/results").glob("compare_*.json"))


def test_digits_have_every_method() -> None:
    result = stored("compare_digits_uniform40.json")
    assert {row["method"] for row in result["rows"]} == set(METHODS)
    assert result["plan"]["seeds"] == 3


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_tables(name: str) -> None:
    result = stored(name)
    table = markdown(result["rows"], leave_out=("removed", "seconds", "cost"))
    assert table in (ROOT / PAGE).read_text()
    assert not {"data_dir", "device"} & set(result["plan"]["options"])
    for row in result["rows"]:
        for name in FIGURES.keys() & row.keys():
            values = row[name]["values"]
            if len(values) > 1:
                assert abs(row[name]["mean"] - mean(values)) < 1e-9
                assert abs(row[name]["std"] - stdev(values)) < 1e-9


def test_the_table_of_costs() -> None:
    stored_costs = stored("method_cost_digits.json")
    table = rows(PAGE, "| method | measured | declared | expected |")
    assert [row[0] for row in table] == list(stored_costs["factors"])
    for name, measured, declared, _ in table:
        assert measured == f"{stored_costs['factors'][name]:.2f}"
        assert declared == f"{stored_costs['declared'][name]:.2f}"


def test_every_method_is_described() -> None:
    described = {row[0].strip("`") for row in rows(PAGE, "| method | paper | needs |")}
    assert described >= set(METHODS)
