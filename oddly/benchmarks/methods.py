"""What each method costs compared with plain training.

Paper: gives no costs; docs/compare.md#what-they-cost lists what the methods' own papers suggest.
Command: oddly benchmark methods
Cost: whole short runs on digits, the best of several; about five minutes on one CPU core. On a CPU
it counts processor seconds of one thread, which other processes disturb little; on a GPU, seconds
on the clock.
Numbers to match: `declared`, the passes per epoch that `oddly compare --equal-cost` counts with.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from oddly.engine.api import train
from oddly.engine.build import choose_device
from oddly.engine.outcome import describe_device
from oddly.errors import unknown_name
from oddly.methods import METHODS
from oddly.records import environment

NOISE = 0.4


def measure(
    methods: Sequence[str] = (),
    data: str = "digits",
    epochs: int = 8,
    repeats: int = 3,
    device: str = "auto",
) -> dict[str, Any]:
    """For each method the factor over ERM, and the factor it declares (passes per epoch)."""
    for name in methods:
        if name not in METHODS:
            raise unknown_name("method", name, METHODS)
    chosen = choose_device(device)
    names = ["erm", *(name for name in methods or METHODS if name != "erm")]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds: dict[str, float] = {}
        passes: dict[str, float] = {}
        for _ in range(repeats):  # interleaved: a slow moment hits all alike
            for name in names:
                spent, passes[name] = _run(name, data, epochs, chosen)
                seconds[name] = min(spent, seconds.get(name, spent))
    finally:
        torch.set_num_threads(threads)
    return {
        "data": data,
        "epochs": epochs,
        "repeats": repeats,
        "clock": "processor seconds, one thread" if chosen.type == "cpu" else "seconds",
        "erm_seconds": seconds["erm"],
        "factors": {name: seconds[name] / seconds["erm"] for name in names},
        "declared": {name: passes[name] / epochs for name in names},
        "environment": environment(describe_device(chosen)),
    }


def _run(name: str, data: str, epochs: int, device: torch.device) -> tuple[float, float]:
    """Seconds and declared passes of one run."""
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    with TemporaryDirectory() as folder:
        begun = clock()
        run = train(
            data, Path(folder) / "run", method=name, epochs=epochs, noise=NOISE, device=device.type
        )
        return clock() - begun, float(run.summary["passes"])
