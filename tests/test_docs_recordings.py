"""The tables of recordings in docs/constants.md."""

from __future__ import annotations

import re

import pytest

from tests.pages import rows, short, stored


def test_the_table_of_the_default() -> None:
    cases = {case["case"]: case for case in stored("sentinels_resnet18_30_epochs.json")["cases"]}
    table = rows("docs/constants.md", "paper's rule (E = 11, p = 10) |")
    assert len(table) == len(cases) == 7
    for name, default, best, removed, paper in table:
        case = cases[re.sub(r" \([\d.]+ %\)$", "", name)]
        assert removed == f"{100 * case['automatic']['removed']:.1f} %"
        if "f1" in case["automatic"]:
            assert (default, best) == (
                short(case["automatic"]["f1"]),
                short(case["automatic"]["best_f1"]),
            )
            assert paper == short(case["paper"]["f1"])
        else:
            assert paper == f"{100 * case['paper']['removed']:.1f} % removed"


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("sentinels_features_25_epochs.json", "| removed | E of 25 |"),
        ("sentinels_features_held_out.json", "| removed | E of the 25 |"),
    ],
)
def test_the_tables_of_features(name: str, heading: str) -> None:
    cases = {case["case"]: case for case in stored(name)["cases"]}
    table = rows("docs/constants.md", heading)
    assert len(table) == len(cases)
    for case, default, best, removed, epoch in table:
        found = cases[re.sub(r" \([\d.]+ %\)$", "", case)]["automatic"]
        assert (removed, epoch) == (f"{100 * found['removed']:.1f} %", str(found["epoch"]))
        if "f1" in found:
            assert (default, best) == (short(found["f1"]), short(found["best_f1"]))


@pytest.mark.parametrize(
    ("kind", "heading", "rules"),
    [
        (
            "features",
            "features | none | predicted as given | a tenth of the margin |",
            ("weight_0.1",),
        ),
        ("resnet18", "| a tenth of the margin | a fifth |", ("weight_0.1", "weight_0.2")),
    ],
)
def test_the_tables_of_later_looks(kind: str, heading: str, rules: tuple[str, ...]) -> None:
    cases = {case["case"]: case for case in stored(f"second_look_{kind}.json")["cases"]}
    table = rows("docs/constants.md", heading)
    assert len(table) == len(cases)
    for name, *cells in table:
        for cell, rule in zip(cells, ("none", "predicted_as_given", *rules), strict=True):
            found = cases[name][rule]
            removed = f"{100 * found['removed']:.1f} % removed"
            assert cell == (short(found["f1"]) if "f1" in found else removed)
