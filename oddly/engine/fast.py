"""What makes steps fast: compiled CUDA graphs, and the best kernels for shapes that come again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from oddly.engine.build import Parts


def fast_model(parts: Parts) -> nn.Module:
    """The model that whole batches go through: compiled into CUDA graphs where asked for."""
    if parts.device.type == "cuda":
        torch.backends.cudnn.benchmark = True
    if not parts.config.compile:
        return parts.model
    torch.compiler.reset()  # after a few networks in one process it would give up and run eagerly
    mode = "reduce-overhead" if parts.device.type == "cuda" else "default"
    compiled: nn.Module = torch.compile(parts.model, mode=mode)  # type: ignore[assignment]
    return compiled


@contextmanager
def no_search() -> Iterator[None]:
    """Take kernels as they come: for a shape seen once an epoch, trying them all takes longer."""
    with search_kept():
        torch.backends.cudnn.benchmark = False
        yield


@contextmanager
def search_kept() -> Iterator[None]:
    """Whether kernels are searched for is afterwards as it was: it holds for the whole process."""
    before = torch.backends.cudnn.benchmark
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
