"""What processes under torch.distributed exchange; without it, all of this does nothing."""

from __future__ import annotations

import torch
from torch import Tensor
from torch import distributed as dist


def count_ranks() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def anywhere(here: bool, device: torch.device) -> bool:
    """Whether `here` is True in any process."""
    if count_ranks() == 1:
        return here
    told = torch.tensor(int(here), device=device)
    dist.all_reduce(told, op=dist.ReduceOp.MAX)
    return bool(told)


def merge_mean(losses: Tensor) -> None:
    """Average over the ranks that saw an example, in place; NaN where none did."""
    if count_ranks() == 1:
        return
    seen = (~losses.isnan()).float()
    losses.masked_fill_(losses.isnan(), 0.0)  # nan_to_num_ would make infinity a number
    dist.all_reduce(losses)
    dist.all_reduce(seen)
    losses.div_(seen)  # 0 / 0 = NaN: still unseen


def merge_latest(column: Tensor, seen: Tensor) -> None:
    """Give every rank the value of the rank that saw an example (`seen`), in place.

    If several ranks saw it, the largest value counts; if none did, each rank keeps its own.
    """
    if count_ranks() == 1:
        return
    fresh = torch.where(seen, column.int(), -1)  # neither gloo nor NCCL can reduce int16
    dist.all_reduce(fresh, op=dist.ReduceOp.MAX)
    column.copy_(torch.where(fresh >= 0, fresh, column))
