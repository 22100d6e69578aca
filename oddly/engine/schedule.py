"""Learning rates as functions of the fractional epoch.

Epochs get shorter once examples are pruned; a schedule counted in steps would then end early.
"""

from __future__ import annotations

import math

SCHEDULES = ("cosine", "step", "constant")


def split_cycles(epochs: float, restart: float) -> list[tuple[float, float]]:
    """Start and end of each cycle: two if the restart is within the epochs, else one."""
    if 0 < restart < epochs:
        return [(0, restart), (restart, epochs)]
    return [(0, epochs)]


def shortest_cycle(epochs: float, restart: float) -> float:
    """The length of the shortest cycle; a warm-up cannot be longer."""
    return min(end - begin for begin, end in split_cycles(epochs, restart))


def schedule_factor(kind: str, time: float, epochs: float, warmup: float = 0.0) -> float:
    """What to multiply the highest learning rate by at `time` (in epochs, 0 ≤ time ≤ epochs)."""
    if time < warmup:
        return time / warmup
    if kind == "constant":
        return 1.0
    progress = (time - warmup) / max(epochs - warmup, 1e-9)
    if kind == "cosine":
        return 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    if kind == "step":
        return 0.1 ** ((progress >= 0.5) + (progress >= 0.75))
    raise ValueError(f"unknown schedule '{kind}'")
