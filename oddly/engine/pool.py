"""Several trainings at a time, each in a process of its own on the same device."""

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
    """The first job, the most valuable, that fits into the time; if none does, the very first.

    That one will be stopped, and goes on the next time.
    """
    return next((job for job in waiting if expect(job) <= seconds_left), waiting[0])


def run_jobs(
    waiting: list[Job],
    work: Callable[[Job], Report],
    at_once: int,
    deadline: float | None,
    expect: Callable[[Job], float],
) -> Iterator[tuple[Job, Report]]:
    """Each job as it ends; no new one begins once the time (`time.time`) is up.

    `work` runs here when it is one at a time, else in other processes, which it must be able to
    reach by pickling. `expect` says how many seconds a job may take; 0 where nobody knows.
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
    """Processes that end at once when the block is left by force, or the parent is gone."""

    def __init__(self, at_once: int) -> None:
        # Spawned, since a forked process cannot use the parent's CUDA.
        context = multiprocessing.get_context("spawn")
        # Nothing is ever sent: what the children hear is that this end is closed, by whatever.
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
            self.line.close()  # what they train goes on from its last checkpoint
        self.executor.shutdown()
        self.line.close()
        self.heard.close()


class _Here(Executor):
    """One job at a time needs no process of its own."""

    def submit(self, fn: Callable[..., Report], /, *args: Any, **kwargs: Any) -> Future[Report]:
        future: Future[Report] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _prepare_process(at_once: int, heard: Connection) -> None:
    """The cores are shared, and nobody trains on when the parent is gone or says stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all: the parent answers it
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // at_once))
    threading.Thread(target=_end_with, args=(heard,), daemon=True).start()


def _end_with(heard: Connection) -> None:
    heard.poll(None)  # returns at the end of the line alone
    os._exit(1)
