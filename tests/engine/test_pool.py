"""Jobs one after another, side by side, against the clock, and killed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from oddly.engine.pool import choose_next, run_jobs
from oddly.errors import InputError


def square(job: int) -> tuple[int, int]:
    return job * job, os.getpid()


def unknown(job: int) -> float:
    return 0.0


def test_one_at_a_time_runs_here_and_in_order() -> None:
    ends = list(run_jobs([3, 1, 2], square, 1, None, unknown))
    assert ends == [(job, (job * job, os.getpid())) for job in (3, 1, 2)]


def test_nothing_begins_once_the_time_is_up() -> None:
    def slow(job: int) -> int:
        time.sleep(1.2)
        return job

    waiting = [1, 2, 3]
    ends = list(run_jobs(waiting, slow, 1, time.time() + 1.0, unknown))
    assert ends == [(1, 1)] and waiting == [2, 3]


def test_what_fits_comes_first() -> None:
    seconds = {"long": 60.0, "short": 10.0}
    assert choose_next(list(seconds), seconds.__getitem__, 61) == "long"
    assert choose_next(list(seconds), seconds.__getitem__, 20) == "short"
    assert choose_next(list(seconds), seconds.__getitem__, 5) == "long"  # to be broken off


def die_when_told(job: Path | None) -> int:
    while job is not None:
        if job.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
    return os.getpid()


def test_processes_and_one_that_is_killed(tmp_path: Path) -> None:
    """Only once the others have ended: whatever runs beside it is lost with it."""
    told = tmp_path / "now"
    ends = run_jobs([None, None, told], die_when_told, 2, None, lambda _: 0.0)
    pids = [pid for _, pid in (next(ends), next(ends))]
    assert os.getpid() not in pids
    told.touch()
    with pytest.raises(InputError, match="a training process was killed, perhaps out of memory"):
        list(ends)
