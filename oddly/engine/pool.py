"""Run several trainings in parallel, each in its own process on the same device."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import torch

from oddly.errors import InputError

Job = TypeVar("Job")
Report = TypeVar("Report")


def choose_next(waiting: Sequence[Job], expect: Callable[[Job], float], seconds_left: float) -> Job:
    """The first job (the most valuable) that fits into the time; if none does, the first of all.

    That one will be stopped when the time is up, and continues next time.
    """
    return next((job for job in waiting if expect(job) <= seconds_left), waiting[0])


def run_jobs(
    waiting: list[Job],
    work: Callable[[Job], Report],
    at_once: int,
    deadline: float | None,
    expect: Callable[[Job], float],
) -> Iterator[tuple[Job, Report]]:
    """Yield each job with its report as it ends; start no job after `deadline` (`time.time`).

    With `at_once` 1, `work` runs in this process; otherwise in others, so it must be picklable.
    `expect` estimates the seconds that a job takes; 0 if unknown.
    """
    end = math.inf if deadline is None else deadline
    running: dict[Future[Report], Job] = {}
    with Pool(at_once) as pool:
        while True:
            while waiting and len(running) < at_once and time.time() < end:
                job = choose_next(waiting, expect, end - time.time())
                waiting.remove(job)
                running[pool.submit(work, job)] = job
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), _result(future)


def _result(future: Future[Report]) -> Report:
    try:
        return future.result()
    except BrokenProcessPool:
        raise InputError(
            "a training process was killed, perhaps out of memory; finished results are kept: run"
            " again with fewer --jobs"
        ) from None


class Pool:
    """Processes that end at once if the `with` block raises, or if the parent dies."""

    def __init__(self, at_once: int) -> None:
        # Spawned, because a forked process cannot use CUDA if its parent does.
        context = multiprocessing.get_context("spawn")
        # Nothing is ever sent. The children notice when this end is closed, even by a kill.
        self.heard, self.line = context.Pipe(duplex=False)
        self.executor: Executor = _Here()
        if at_once > 1:
            told = (at_once, self.heard)
            self.executor = ProcessPoolExecutor(at_once, context, _prepare_process, told)

    def submit(self, work: Callable[[Job], Report], job: Job) -> Future[Report]:
        return self.executor.submit(work, job)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.line.close()  # ends the children; their trainings continue from checkpoints later
        self.executor.shutdown()
        self.line.close()
        self.heard.close()


class _Here(Executor):
    """Runs jobs in this process, one at a time."""

    def submit(self, fn: Callable[..., Report], /, *args: Any, **kwargs: Any) -> Future[Report]:
        future: Future[Report] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _prepare_process(at_once: int, heard: Connection) -> None:
    """Use a share of the cores, and end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent handles it
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // at_once))
    threading.Thread(target=_end_with, args=(heard,), daemon=True).start()


def _end_with(heard: Connection) -> None:
    heard.poll(None)  # blocks until the other end is closed
    os._exit(1)
