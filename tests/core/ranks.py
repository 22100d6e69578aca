"""What every rank of test_distributed does: `torchrun ranks.py FOLDER` writes FOLDER/<rank>.pt.

The models are fixed, one per epoch, so that the same examples have the same losses whoever looks.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import TensorDataset

from oddly.core import Denoiser, IndexedDataset, LossLedger
from oddly.core.ledger import STATISTICS
from oddly.core.ranks import merge_latest
from tests.leaving import leave_together

NUM_EXAMPLES, NUM_CLASSES, FEATURES, EPOCHS, PRUNE_AFTER = 61, 3, 4, 4, 3


ALL_REDUCE = "c10d::allreduce_"  # as the profiler calls it
MANY, LONG = 203, 12  # examples and epochs of the runs with sentinels: 20 of them


def make_problem(num_examples: int, epochs: int) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, labels of which every seventh is wrong, and one model's weights per epoch."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(num_examples, FEATURES, generator=generator)
    weights = torch.randn(epochs, NUM_CLASSES, FEATURES, generator=generator)
    labels = (inputs @ weights.sum(0).T).argmax(1)
    labels[::7] = (labels[::7] + 1) % NUM_CLASSES
    return inputs, labels, weights.cumsum(0)


def run(denoiser: Denoiser, problem: tuple[Tensor, Tensor, Tensor], learns_at: int) -> list[Any]:
    """All epochs on this rank's share, returned; from `learns_at` on labels are known by heart."""
    inputs, labels, weights = problem
    shares = []
    for epoch, weight in enumerate(weights):
        model = nn.Linear(FEATURES, NUM_CLASSES, bias=False)
        model.weight.data = weight
        shares.append(list(denoiser.sampler))
        for index in torch.tensor(shares[-1]).split(8):
            planted = denoiser.plant(index, labels[index])
            logits = model(inputs[index])
            if epoch >= learns_at:
                logits = logits + 50 * F.one_hot(planted, NUM_CLASSES)
            denoiser.observe(index, logits, planted)
        denoiser.end_epoch(model)
    return shares


def outcome(denoiser: Denoiser, shares: list[Any]) -> dict[str, Any]:
    verdict = denoiser.verdict
    assert verdict is not None
    sentinels = denoiser.sentinels
    return {
        "shares": shares,
        "keep": verdict.keep,
        "scores": verdict.scores,
        "losses": verdict.losses,
        "labels": verdict.labels.long(),
        "rivals": None if verdict.rivals is None else verdict.rivals.long(),
        "threshold": verdict.threshold,
        "percentile": verdict.percentile,
        "counterfactual": verdict.counterfactual.losses,
        "spared": verdict.spared_classes,
        "epoch": verdict.epoch,
        "noise_rate": verdict.noise_rate,
        "separations": sentinels and sentinels.separations,
    }


def denoise(counterfactual: str, statistic: str) -> dict[str, Any]:
    """By weights or wrong labels: the indices of every epoch, and the verdict."""
    denoiser = Denoiser(
        NUM_EXAMPLES,
        NUM_CLASSES,
        prune_after=PRUNE_AFTER,
        percentile=60,
        counterfactual=counterfactual,
        statistic=statistic,
        draws=2000,
    )
    shares = run(denoiser, make_problem(NUM_EXAMPLES, EPOCHS), learns_at=EPOCHS)
    return outcome(denoiser, shares)


def denoise_planting(prune_after: int | None) -> dict[str, Any]:
    """With sentinels, which the model knows by heart from the sixth epoch on."""
    denoiser = Denoiser(
        MANY, NUM_CLASSES, epochs=LONG, prune_after=prune_after, counterfactual="sentinels"
    )
    return outcome(denoiser, run(denoiser, make_problem(MANY, LONG), learns_at=5))


def stop_midway(rank: int) -> dict[str, Any]:
    """Stopped before E in the middle of an epoch, of which the second rank has seen nothing yet."""
    problem = make_problem(MANY, 3)
    inputs, labels, weights = problem
    denoiser = Denoiser(MANY, NUM_CLASSES, prune_after=9, counterfactual="sentinels")
    shares = run(denoiser, (inputs, labels, weights[:2]), learns_at=9)
    if rank == 0:
        index = torch.tensor(list(denoiser.sampler)[:40])
        logits = inputs[index] @ weights[2].T
        denoiser.observe(index, logits, denoiser.plant(index, labels[index]))
    denoiser.judge_now(nn.Linear(FEATURES, NUM_CLASSES))
    return outcome(denoiser, shares)


def merge_by_hand(rank: int) -> torch.Tensor:
    """Example 0: both ranks, 1: the first, 2: the second, 3: the second, infinite, 4: nobody."""
    ledger = LossLedger(5, "last")
    seen = {0: 1.0, 1: 5.0} if rank == 0 else {0: 4.0, 2: 7.0, 3: torch.inf}
    ledger.record(torch.tensor(list(seen)), torch.tensor(list(seen.values())))
    ledger.close_epoch()
    return ledger.values


def merge_latest_by_hand(rank: int) -> torch.Tensor:
    """Example 0: both ranks, 1: the first, 2: the second, 3: nobody, so that each keeps its own."""
    column = torch.tensor([5, 6, 7, 8] if rank == 0 else [9, 2, 3, 4], dtype=torch.int16)
    seen = torch.tensor([True, True, False, False] if rank == 0 else [True, False, True, False])
    merge_latest(column, seen)
    return column


def count_messages(counterfactual: str) -> int:
    """How often an epoch without a verdict has the ranks tell each other N or S numbers."""
    inputs, labels, weights = make_problem(MANY, 1)
    statistic = "last" if counterfactual == "wrong_label" else "ema"
    denoiser = Denoiser(
        MANY, NUM_CLASSES, prune_after=9, counterfactual=counterfactual, statistic=statistic
    )
    index = torch.tensor(list(denoiser.sampler))
    planted = denoiser.plant(index, labels[index])
    denoiser.observe(index, inputs[index] @ weights[0].T, planted)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        denoiser.end_epoch(nn.Linear(FEATURES, NUM_CLASSES))
    return sum(event.count for event in profiler.key_averages() if event.key == ALL_REDUCE)


def first_epoch_of(share: float) -> list[str]:
    """What is said after an epoch in which every rank goes through that share of its examples."""
    inputs, labels, weights = make_problem(MANY, 1)
    dataset = IndexedDataset(TensorDataset(inputs, labels))
    denoiser = Denoiser(dataset, NUM_CLASSES, epochs=LONG)
    order = list(denoiser.sampler)
    for index in order[: round(share * len(order))]:
        example, label, _ = dataset[index]
        logits = (example @ weights[0].T)[None]
        denoiser.observe(torch.tensor([index]), logits, label[None])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        denoiser.end_epoch(nn.Linear(FEATURES, NUM_CLASSES))
    return [str(warning.message).partition(":")[0] for warning in caught]


def main(folder: Path) -> None:
    dist.init_process_group("gloo")
    results: dict[str, Any] = {name: denoise("weights", name) for name in STATISTICS}
    results["wrong_label"] = denoise("wrong_label", "last")
    results["fixed"], results["automatic"] = denoise_planting(3), denoise_planting(None)
    results["stopped"] = stop_midway(dist.get_rank())
    results["by_hand"] = merge_by_hand(dist.get_rank())
    results["latest"] = merge_latest_by_hand(dist.get_rank())
    kinds = ("sentinels", "weights", "wrong_label")
    results["messages"] = {kind: count_messages(kind) for kind in kinds}
    results["told"] = first_epoch_of(1.0), first_epoch_of(0.5)
    torch.save(results, folder / f"{dist.get_rank()}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    leave_together()
