"""A run sets its own seeds without changing the caller's random numbers."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch


def fork_randomness() -> AbstractContextManager[None]:
    """Restore all generators afterwards, whatever is seeded and drawn inside.

    All GPUs are listed, because `torch.manual_seed` seeds all of them, and because torch warns on
    machines with several GPUs if none is listed.
    """
    return torch.random.fork_rng(range(torch.cuda.device_count()), device_type="cuda")
