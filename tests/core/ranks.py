"""What every rank of test_distributed does: `torchrun ranks.py FOLDER` writes FOLDER/<rank>.pt.

The models are fixed, one per epoch, so that the same examples have the same losses whoever looks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist
from torch import nn

from oddly.core import Denoiser, LossLedger
from oddly.core.ledger import STATISTICS

NUM_EXAMPLES, NUM_CLASSES, FEATURES, EPOCHS, PRUNE_AFTER = 61, 3, 4, 4, 3


def denoise(statistic: str) -> dict[str, Any]:
    """A whole run on this rank's share: the indices of every epoch, and the verdict."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(NUM_EXAMPLES, FEATURES, generator=generator)
    weights = torch.randn(EPOCHS, NUM_CLASSES, FEATURES, generator=generator)
    labels = (inputs @ weights.sum(0).T).argmax(1)
    labels[::7] = (labels[::7] + 1) % NUM_CLASSES
    denoiser = Denoiser(
        NUM_EXAMPLES, NUM_CLASSES, PRUNE_AFTER, percentile=60, statistic=statistic, draws=2000
    )
    shares = []
    for epoch in range(EPOCHS):
        model = nn.Linear(FEATURES, NUM_CLASSES)
        model.weight.data = weights[: epoch + 1].sum(0)
        nn.init.zeros_(model.bias)
        shares.append(list(denoiser.sampler))
        for index in torch.tensor(shares[-1]).split(8):
            denoiser.observe(index, model(inputs[index]), labels[index])
        denoiser.end_epoch(model)
    verdict = denoiser.verdict
    assert verdict is not None
    return {
        "shares": shares,
        "keep": verdict.keep,
        "losses": verdict.losses,
        "labels": verdict.labels.long(),
        "threshold": verdict.threshold,
        "spared": verdict.spared_classes,
    }


def merge_by_hand(rank: int) -> torch.Tensor:
    """Example 0: both ranks, 1: the first, 2: the second, 3: nobody."""
    ledger = LossLedger(4, "last")
    index, losses = ([0, 1], [1.0, 5.0]) if rank == 0 else ([0, 2], [4.0, 7.0])
    ledger.record(torch.tensor(index), torch.tensor(losses))
    ledger.close_epoch()
    return ledger.values


def main(folder: Path) -> None:
    dist.init_process_group("gloo")
    try:
        results: dict[str, Any] = {name: denoise(name) for name in STATISTICS}
        results["by_hand"] = merge_by_hand(dist.get_rank())
        torch.save(results, folder / f"{dist.get_rank()}.pt")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
