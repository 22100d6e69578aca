"""Rows as text."""

from __future__ import annotations

from typing import Any

from oddly.compare.table import COLUMNS, FIGURES, cells_of, lines_of, markdown, tell_doubts


def figures(mean: float | None, std: float | None) -> dict[str, Any]:
    return {name: {"mean": mean, "std": std, "values": []} for name in FIGURES}


def test_cells() -> None:
    row = {"method": "gce", "passes": 40.0, "cost": 1.234, **figures(0.5, 0.25)}
    assert cells_of(row) == [
        *(
            "gce",
            "0.50 ± 0.25 %",
            "50.0 ± 25.0 %",
            "0.500 ± 0.250",
            "0.500 ± 0.250",
            "0.500 ± 0.250",
        ),
        *("0.500 ± 0.250", "0.5 ± 0.2", "40", "1.23×"),
    ]
    one_seed = {"method": "erm", "passes": 40.0, "cost": None, **figures(0.5, None)}
    assert cells_of(one_seed)[1] == "0.50 %" and cells_of(one_seed)[-1] == "–"
    nothing = {"method": "dmi", "passes": None, "cost": None, **figures(None, None)}
    assert cells_of(nothing) == ["dmi"] + ["–"] * 9


def test_a_comparison_older_than_a_figure_can_be_shown() -> None:
    row = {"method": "gce", "passes": 40.0, "cost": 1.0, **figures(0.5, None)}
    del row["removed_fraction"]
    assert cells_of(row)[2] == "–"


def test_columns_of_which_nothing_is_known_are_left_out() -> None:
    some, none = {"mean": 50.0, "std": None}, {"mean": None, "std": None}
    erm = {"method": "erm", "passes": 4, "cost": 1.0, **dict.fromkeys(FIGURES, none)}
    odd = {**erm, "method": "odd", "cost": None, "test_accuracy": some}
    assert lines_of([erm, odd]) == [
        ["method", "test accuracy", "passes", "cost"],
        ["erm", "–", "4", "1.00×"],
        ["odd", "50.00 %", "4", "–"],
    ]
    assert lines_of([]) == [list(COLUMNS)]


def test_markdown() -> None:
    text = markdown([{"method": "gce", "passes": 4, "cost": 1, **figures(1, None)}]).splitlines()
    assert len(text) == 3 and all(line.count("|") == len(COLUMNS) + 1 for line in text)
    short = markdown([{"method": "gce", "passes": 4, "cost": 1, **figures(1, None)}], ["seconds"])
    assert "seconds" not in short and short.splitlines()[2].count("|") == len(COLUMNS)


def test_doubts_are_counted_and_the_first_is_told() -> None:
    assert tell_doubts([None, "Hardly learnt.", "Memorised."]) == "2 of 3 verdicts: Hardly learnt."
    assert tell_doubts(["Memorised."]) == "1 of 1 verdict: Memorised."
    assert tell_doubts([None]) is None and tell_doubts([]) is None
