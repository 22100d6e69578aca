"""What is told of things that go wrong stays on one line."""

from __future__ import annotations

import pytest

from oddly.errors import MOST_LISTED, first_line, unknown_name


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("one"), "one"),
        (ValueError("\n  one\ntwo\n"), "one"),
        (ValueError(), "ValueError"),
        (KeyError(""), "''"),
        (OSError("  "), "OSError"),
    ],
)
def test_the_first_line_of_an_error_or_its_kind(error: Exception, told: str) -> None:
    assert first_line(error) == told


def test_a_name_that_is_like_none_gets_a_list_unless_it_is_endless() -> None:
    few, many = ["ab", "cd"], [f"name{i}" for i in range(MOST_LISTED + 1)]
    assert str(unknown_name("thing", "xyz", few)) == "unknown thing 'xyz'; known: ab, cd"
    assert str(unknown_name("thing", "xyz", [])) == "unknown thing 'xyz'; known: none"
    told = str(unknown_name("thing", "xyz", many))
    assert told == "unknown thing 'xyz'; none of the 31 known names is similar"
    assert str(unknown_name("thing", "nam7", many)) == "unknown thing 'nam7'; did you mean 'name7'?"


def test_a_name_is_found_whatever_its_case_and_one_with_a_comma_stays_one() -> None:
    known = ["ODD", "ERM, one minute", "ERM"]
    assert str(unknown_name("row", "odd", known)).endswith("did you mean 'ODD'?")
    told = str(unknown_name("row", "xyz", known))
    assert told == "unknown row 'xyz'; known: ERM, 'ERM, one minute', ODD"
