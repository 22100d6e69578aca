"""Denoising time adds up, and nothing else does."""

from __future__ import annotations

import pytest
import torch

from oddly.core.stopwatch import Stopwatch

CPU = torch.device("cpu")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What time it is, in its only place."""
    now = [10.0]
    monkeypatch.setattr("oddly.core.stopwatch.time.perf_counter", lambda: now[0])
    return now


def test_adds_up_what_lies_inside(clock: list[float]) -> None:
    stopwatch = Stopwatch()
    for _ in range(2):
        with stopwatch(CPU):
            clock[0] += 0.25
        clock[0] += 2  # outside
    assert stopwatch.seconds == 0.5


def test_goes_on_from_an_earlier_total(clock: list[float]) -> None:
    stopwatch = Stopwatch(100.0)
    with stopwatch(CPU):
        clock[0] += 0.5
    assert stopwatch.seconds == 100.5


def test_an_error_inside_comes_out() -> None:
    with pytest.raises(ZeroDivisionError), Stopwatch()(CPU):
        _ = 1 / 0


@pytest.mark.gpu
def test_on_a_gpu_it_measures_the_device() -> None:
    stopwatch = Stopwatch()
    with stopwatch(torch.device("cuda")):
        torch.cuda._sleep(200_000_000)  # cycles: about a tenth of a second
    seconds = stopwatch.seconds
    assert 0.02 < seconds < 2
    assert stopwatch.seconds == seconds  # reading does not add
