"""What is told of things that go wrong stays on one line."""

from __future__ import annotations

import pytest

from oddly.errors import first_line


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
