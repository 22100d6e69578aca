"""On a GPU, batches wait here until there are enough of them to be worth a round of kernels."""

from __future__ import annotations

import torch
from torch import Tensor

ROUND = 4_096  # examples; launching per step would cost 0.5 ms each, this costs microseconds


class Backlog:
    """Observations not processed yet: indices, logits and labels of some steps.

    If an example comes twice in one round, either observation may count: a GPU writes in no fixed
    order.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Tensor, Tensor, Tensor]] = []
        self._examples = 0

    def add(self, index: Tensor, logits: Tensor, labels: Tensor) -> bool:
        """Add a batch; returns whether it is time to take them all."""
        # Copied, because the next step of a network that runs as a CUDA graph overwrites them.
        logits = logits.detach().to(torch.float32, copy=True)
        index, labels = (
            column.to(logits.device, non_blocking=True, copy=True) for column in (index, labels)
        )
        self._waiting.append((index, logits, labels))
        self._examples += len(index)
        return self._examples >= ROUND

    def take(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """Everything added since the last call, as one batch; None if there is nothing."""
        if not self._waiting:
            return None
        index, logits, labels = (torch.cat(column) for column in zip(*self._waiting, strict=True))
        self._waiting, self._examples = [], 0
        return index, logits, labels
