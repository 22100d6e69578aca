"""Denoising time adds up, and nothing else does."""

from __future__ import annotations

import time

import pytest
import torch

from oddly.core.stopwatch import Stopwatch

CPU = torch.device("cpu")


def test_adds_up_what_lies_inside() -> None:
    stopwatch = Stopwatch()
    for _ in range(2):
        with stopwatch(CPU):
            time.sleep(0.02)
        time.sleep(0.05)  # outside
    assert 0.04 <= stopwatch.seconds < 0.09


def test_goes_on_from_an_earlier_total() -> None:
    stopwatch = Stopwatch(100.0)
    with stopwatch(CPU):
        time.sleep(0.01)
    assert 100.01 <= stopwatch.seconds < 101


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
