from __future__ import annotations

import math

import pytest

from oddly.engine.schedule import SCHEDULES, schedule_factor


@pytest.mark.parametrize(
    ("kind", "time", "factor"),
    [
        ("constant", 0.0, 1.0),
        ("constant", 9.5, 1.0),
        ("cosine", 0.0, 1.0),
        ("cosine", 2.5, 0.5 * (1 + math.sqrt(0.5))),  # a quarter: cos 45°
        ("cosine", 5.0, 0.5),
        ("cosine", 10.0, 0.0),
        ("step", 4.99, 1.0),
        ("step", 5.0, 0.1),
        ("step", 7.49, 0.1),
        ("step", 7.5, 0.01),
        ("step", 10.0, 0.01),
    ],
)
def test_factors_by_hand(kind: str, time: float, factor: float) -> None:
    assert schedule_factor(kind, time, 10) == pytest.approx(factor)


@pytest.mark.parametrize("kind", SCHEDULES)
def test_warmup_rises_from_nothing_and_then_begins(kind: str) -> None:
    assert schedule_factor(kind, 0, 10, warmup=2) == 0
    assert schedule_factor(kind, 0.5, 10, warmup=2) == pytest.approx(0.25)
    assert schedule_factor(kind, 2, 10, warmup=2) == 1


def test_after_warmup_the_rest_of_the_epochs_count() -> None:
    assert schedule_factor("cosine", 6, 10, warmup=2) == pytest.approx(0.5)


def test_warmup_may_fill_the_whole_run() -> None:
    assert schedule_factor("cosine", 4.9, 5, warmup=5) == pytest.approx(0.98)


def test_unknown_kind() -> None:
    with pytest.raises(ValueError, match="unknown schedule"):
        schedule_factor("linear", 1, 10)
