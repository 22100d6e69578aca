"""Batches put aside on a GPU until a round of small kernels is worth launching."""

from __future__ import annotations

import torch
from torch import Tensor

ROUND = 4_096  # examples; half a millisecond of launches per step becomes a few microseconds


class Backlog:
    """Observations that wait: indices, logits and labels of some steps.

    Of an example that comes twice in one round either observation may count: a GPU writes in no
    fixed order.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Tensor, Tensor, Tensor]] = []
        self._examples = 0

    def add(self, index: Tensor, logits: Tensor, labels: Tensor) -> bool:
        """Put a batch aside; says whether it is time to take them all."""
        # Copies: where a network runs as a CUDA graph, its next step overwrites them all.
        logits = logits.detach().to(torch.float32, copy=True)
        index, labels = (
            column.to(logits.device, non_blocking=True, copy=True) for column in (index, labels)
        )
        self._waiting.append((index, logits, labels))
        self._examples += len(index)
        return self._examples >= ROUND

    def take(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """All that waits, as one batch."""
        if not self._waiting:
            return None
        index, logits, labels = (torch.cat(column) for column in zip(*self._waiting, strict=True))
        self._waiting, self._examples = [], 0
        return index, logits, labels
