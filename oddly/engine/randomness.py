"""A run sets seeds of its own, and leaves everybody else's random numbers alone."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch


def fork_randomness() -> AbstractContextManager[None]:
    """Whatever is seeded and drawn inside, afterwards all generators are as they were.

    Every GPU is named, for `torch.manual_seed` sets them all; where none is, torch warns on a
    machine with several.
    """
    return torch.random.fork_rng(range(torch.cuda.device_count()), device_type="cuda")
