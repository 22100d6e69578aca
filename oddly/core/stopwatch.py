"""Measure the time that denoising takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Stopwatch:
    """Seconds spent inside `with stopwatch(device):`; on a GPU, by events, without waiting."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._pending: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    @contextmanager
    def __call__(self, device: torch.device) -> Iterator[None]:
        if device.type == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            yield
            end.record()
            self._pending.append((begin, end))
        else:
            begun = time.perf_counter()
            yield
            self._seconds += time.perf_counter() - begun

    @property
    def seconds(self) -> float:
        """The total so far; on a GPU this waits for what is still running."""
        self.settle()
        return self._seconds

    def settle(self) -> None:
        """Turn events into seconds, so that they do not pile up; waits for the GPU."""
        if self._pending:
            torch.cuda.synchronize()
            self._seconds += sum(begin.elapsed_time(end) for begin, end in self._pending) / 1000
            self._pending.clear()
