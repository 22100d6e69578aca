"""Fast steps: compiled CUDA graphs, and a search for the best kernels for recurring shapes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from oddly.engine.build import Parts


def fast_model(parts: Parts) -> nn.Module:
    """The model for whole batches: compiled into CUDA graphs if the config asks for it."""
    if parts.device.type == "cuda":
        torch.backends.cudnn.benchmark = True
    if not parts.config.compile:
        return parts.model
    torch.compiler.reset()  # otherwise it gives up after a few networks in one process
    mode = "reduce-overhead" if parts.device.type == "cuda" else "default"
    compiled: nn.Module = torch.compile(parts.model, mode=mode)  # type: ignore[assignment]
    return compiled


@contextmanager
def no_search() -> Iterator[None]:
    """Do not search for the best kernels: for a shape seen once per epoch, that takes longer."""
    with search_kept():
        torch.backends.cudnn.benchmark = False
        yield


@contextmanager
def search_kept() -> Iterator[None]:
    """Restore the process-wide setting of the kernel search afterwards."""
    before = torch.backends.cudnn.benchmark
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
