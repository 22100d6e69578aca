"""Warnings about training loops that are not set up right; each is given once."""

from __future__ import annotations

import warnings

from torch import Tensor

PASSES = 3  # passes over the data without a call of end_epoch: it was probably forgotten
MISSED = 0.4  # if a larger share was not seen, the epoch was incomplete (drop_last leaves out less)


def warn_unclosed(observed: int, examples: int) -> None:
    """Warn if the loop does not call `end_epoch`: there would never be a verdict."""
    warnings.warn(
        f"{observed:,} observations of {examples:,} examples without the end of an epoch: call"
        " denoiser.end_epoch(model) after each epoch, or there will be no verdict",
        stacklevel=4,  # the caller of observe(), beyond torch.no_grad()
    )


def warn_unless_kept(index: Tensor, keep: Tensor) -> None:
    """Warn if the loop still trains on removed examples."""
    if not bool(keep[index.cpu().long()].all()):
        warnings.warn(
            "your loader still yields removed examples: pass it sampler=denoiser.sampler,"
            " or leave out denoiser.verdict.removed yourself",
            stacklevel=4,  # the caller of observe(), beyond torch.no_grad()
        )


def missed_many(seen: Tensor) -> bool:
    """Whether so few examples were `seen` (N,) that the epoch was incomplete."""
    return len(seen) - int(seen.count_nonzero()) > MISSED * len(seen)


def warn_unseen(seen: Tensor) -> None:
    """Warn if many examples were not `seen` (N,) in the first epoch by any process."""
    if missed_many(seen):
        unseen = len(seen) - int(seen.count_nonzero())
        warnings.warn(
            f"{unseen:,} of {len(seen):,} examples were not observed in the first epoch: call"
            " observe for every batch of the loader, then end_epoch, and do not shard the loader a"
            " second time (with accelerate, do not prepare it)",
            stacklevel=4,  # the caller of end_epoch()
        )
