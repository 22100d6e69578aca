"""Yield only the kept examples, in an order that follows from epoch and seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist
from torch.utils.data import Sampler

from oddly.core.ranks import count_ranks
from oddly.errors import InputError


class KeepSampler(Sampler[int]):
    """Sampler over the kept indices of N examples; `len` is exact, also after pruning.

    Under torch.distributed each rank gets its share of the same order. The first few indices are
    repeated if ranks would otherwise get different numbers (unequal loops would hang).
    `refill` keeps epochs as long as before: kept examples are repeated in a new order.
    With `batch_size`, a pruned epoch does not end with a batch of one, which batch norm rejects:
    that example is left out. With `drop_last`, it has at least one whole batch.
    """

    def __init__(
        self,
        num_examples: int,
        seed: int = 0,
        shuffle: bool = True,
        rank: int | None = None,
        world_size: int | None = None,
        refill: bool = False,
        batch_size: int | None = None,
        drop_last: bool = False,
    ) -> None:
        if num_examples < 1:
            raise InputError("the dataset is empty")
        ranks = count_ranks()
        self.rank = rank if rank is not None else (dist.get_rank() if ranks > 1 else 0)
        self.world_size = world_size if world_size is not None else ranks
        self.num_examples, self.seed, self.shuffle = num_examples, seed, shuffle
        self.refill, self.batch_size, self.drop_last = refill, batch_size, drop_last
        self.epoch, self.start = 0, 0
        self.num_kept = num_examples
        self._keep: Tensor | None = None  # None: all of them

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Set the epoch to draw next; `start` skips what an interrupted epoch had yielded."""
        self.epoch, self.start = epoch, start

    def set_keep(self, keep: Tensor) -> None:
        """Yield only the indices where `keep` (N,) is True."""
        if keep.dtype != torch.bool or keep.shape != (self.num_examples,):
            raise InputError(
                f"keep must be a boolean mask of {self.num_examples}, got {keep.dtype}"
                f" {tuple(keep.shape)}"
            )
        num_kept = int(keep.count_nonzero())  # sum() would widen the mask to 8 bytes each
        if not num_kept:
            raise InputError("keep is False everywhere, so nothing is left to train on")
        self.num_kept = num_kept
        # The mask, not the indices: a byte per example rather than eight, and no second copy.
        self._keep = None if num_kept == self.num_examples else keep.cpu()

    def order(self) -> Tensor:
        """This epoch's indices for this rank, int64."""
        generator = torch.Generator().manual_seed(_mix(self.seed, self.epoch))
        order = self._round(generator)
        while len(order) < self._total:
            order = torch.cat((order, self._round(generator)))[: self._total]
        if self._keep is not None:
            order = self._keep.nonzero().flatten()[order]
        if self.world_size > 1:
            share = -(-len(order) // self.world_size)
            places = torch.arange(share) * self.world_size + self.rank
            order = order[places % len(order)]
        return order[self.start : self._share]

    def _round(self, generator: torch.Generator) -> Tensor:
        """The numbers 0 … num_kept - 1, each once."""
        if self.shuffle:
            return torch.randperm(self.num_kept, generator=generator)
        return torch.arange(self.num_kept)

    @property
    def _total(self) -> int:
        """How many indices all ranks together yield in an epoch."""
        if self.drop_last and self.batch_size and self._keep is not None and not self.refill:
            return max(self.num_kept, self.batch_size * self.world_size)  # else all were dropped
        return self.num_examples if self.refill else self.num_kept

    @property
    def _share(self) -> int:
        """How many of them this rank yields; the same number for every rank."""
        share = -(-self._total // self.world_size)
        if self._keep is None or self.refill or self.drop_last or not self.batch_size:
            return share
        return share - (share > self.batch_size > 1 and share % self.batch_size == 1)

    def __iter__(self) -> Iterator[int]:
        for part in self.order().split(2**16):  # a whole list of ints would cost 4× the tensor
            yield from part.tolist()

    def __len__(self) -> int:
        return max(0, self._share - self.start)

    def state_dict(self) -> dict[str, Any]:
        keep = torch.empty(0, dtype=torch.bool) if self._keep is None else self._keep
        return {"epoch": self.epoch, "start": self.start, "keep": keep}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.set_epoch(state["epoch"], state["start"])
        self._keep, self.num_kept = None, self.num_examples
        if len(state["keep"]):
            self.set_keep(state["keep"].clone())


def _mix(seed: int, epoch: int) -> int:
    """One generator seed from two numbers; seed 0 epoch 1 and seed 1 epoch 0 stay apart."""
    return (seed * 1_000_003 + epoch * 7_919 + 17) % 2**63
