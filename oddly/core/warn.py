"""What a training loop is told that goes astray, each once."""

from __future__ import annotations

import warnings

from torch import Tensor

PASSES = 3  # over the data without a call of end_epoch: then somebody has forgotten it
MISSED = 0.4  # of the examples: then an epoch was no whole one (drop_last may leave out fewer)


def warn_unclosed(observed: int, examples: int) -> None:
    """Tell a training loop that never says when an epoch ends: no verdict would ever come."""
    warnings.warn(
        f"{observed:,} observations of {examples:,} examples without the end of an epoch: call"
        " denoiser.end_epoch(model) after each epoch, or there will be no verdict",
        stacklevel=4,  # the caller of observe(), beyond torch.no_grad()
    )


def warn_unless_kept(index: Tensor, keep: Tensor) -> None:
    """Tell a training loop that goes on with examples that were removed."""
    if not bool(keep[index.cpu().long()].all()):
        warnings.warn(
            "your loader still yields removed examples: pass it sampler=denoiser.sampler,"
            " or leave out denoiser.verdict.removed yourself",
            stacklevel=4,  # the caller of observe(), beyond torch.no_grad()
        )


def warn_unseen(seen: Tensor) -> None:
    """Tell a training loop whose first epoch, in all processes, has not `seen` (N,) the whole."""
    unseen = len(seen) - int(seen.count_nonzero())
    if unseen > MISSED * len(seen):
        warnings.warn(
            f"{unseen:,} of {len(seen):,} examples were not observed in the first epoch: call"
            " observe for every batch of the loader, then end_epoch, and do not shard the loader a"
            " second time (with accelerate, do not prepare it)",
            stacklevel=3,  # the caller of end_epoch()
        )
