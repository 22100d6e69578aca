"""A few numbers about the losses of all examples at a milestone of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from oddly.core.counterfactual import Counterfactual, draw_losses
from oddly.core.head import find_head
from oddly.core.judging import judge
from oddly.core.verdict import Verdict
from oddly.data.base import LabelledData
from oddly.engine.build import TEST_BATCH, build_network, choose_device, use_bf16
from oddly.engine.checkpoint import load_checkpoint, milestone_path
from oddly.engine.config import RunConfig
from oddly.engine.evaluate import predict
from oddly.engine.feed import make_feed
from oddly.errors import InputError
from oddly.records import score_verdict

PERCENTILES = (1.0, 5.0, 10.0, 30.0, 50.0, 80.0)
PAPER_PERCENTILE = 10.0
EDGES = np.linspace(0, 15, 151)
"""The same for all runs, so that their histograms can be compared."""
DRAWS = 20_000
SWEPT = ("threshold", "removed", "precision", "recall", "f1", "refused")


def look(
    folder: Path, epoch: int, data: LabelledData, config: RunConfig, decisive: bool = False
) -> dict[str, Any]:
    """Losses of epoch `epoch` against q_n: histograms, KS distances, what each p would remove.

    `data` has the given labels that the run was trained with. `decisive` (at E itself) adds two
    things: what p = 10 would remove by the losses of a sweep after the epoch, without augmentation
    and in evaluation mode (the paper does not say which losses it uses); and for clean data, which
    examples would be removed (figure 2 shows them).
    """
    state = load_checkpoint(folder, milestone_path(folder, epoch).name)
    if state is None:
        raise InputError(f"{folder} has no checkpoint of epoch {epoch}")
    network = _restore(state["model"], data, config, decisive)
    losses = state["method"]["denoiser"]["ledger"]["values"]
    drawn = Counterfactual.from_losses(_draw(network, data, config), "weights")
    wrong = torch.zeros(len(losses), dtype=torch.bool)
    if data.true_labels is not None:
        wrong = data.train.labels != data.true_labels
    groups = {"normal": losses[~wrong], "noise": losses[wrong], "simulated": drawn.losses}
    found = {
        "histogram": histograms(groups),
        "quantiles": {name: quantiles(values) for name, values in groups.items()},
        "ks_noise_simulated": ks_distance(groups["noise"], groups["simulated"]),
        "ks_noise_normal": ks_distance(groups["noise"], groups["normal"]),
        "by_percentile": {
            f"{p:g}": _judge(losses, drawn, p, epoch, data, wrong, decisive) for p in PERCENTILES
        },
    }
    if decisive:
        swept = _sweep(network, data, config)
        judged = _judge(swept, drawn, PAPER_PERCENTILE, epoch, data, wrong)
        found["sweep"] = {name: judged[name] for name in SWEPT if name in judged}
    return found


def _restore(
    weights: Mapping[str, Tensor], data: LabelledData, config: RunConfig, sweep: bool
) -> nn.Module:
    """The saved network; on the run's device if it is to `sweep` over all examples."""
    device = choose_device(config.device) if sweep else torch.device("cpu")
    with torch.random.fork_rng(devices=[]):  # building the network draws initial weights
        network = build_network(replace(config, weights=None), data, device)
    network.load_state_dict(weights)
    return network


def _draw(network: nn.Module, data: LabelledData, config: RunConfig) -> Tensor:
    """q_n from the final layer; on a CPU exactly as the run itself would have drawn it."""
    head = find_head(network, len(data.class_names))
    return draw_losses(head, DRAWS, torch.Generator().manual_seed(config.order_seed))


def _sweep(network: nn.Module, data: LabelledData, config: RunConfig) -> Tensor:
    device = next(network.parameters()).device
    feed = make_feed(data, data.train, TEST_BATCH, device, config.workers)
    bf16 = use_bf16(config.precision, device)
    return predict(network, feed, bf16, len(data.class_names)).losses


def _judge(
    losses: Tensor,
    drawn: Counterfactual,
    percentile: float,
    epoch: int,
    data: LabelledData,
    wrong: Tensor,
    decisive: bool = False,
) -> dict[str, Any]:
    try:
        labels = data.train.labels
        classes = len(data.class_names)
        verdict = judge(losses, labels, drawn, percentile, epoch, classes)
    except InputError as error:  # every loss above the threshold: too early for this p
        return {"refused": str(error)}
    scored = score_verdict(verdict.keep.numpy(), verdict.scores.numpy(), wrong.numpy())
    named = decisive and percentile == PAPER_PERCENTILE and not bool(wrong.any())
    return {
        "threshold": verdict.threshold,
        "removed": verdict.removed_fraction,
        "precision": scored["precision"],
        "recall": scored["recall"],
        "f1": scored["f1"],
    } | (_name_removed(verdict) if named else {})


def _name_removed(verdict: Verdict) -> dict[str, Any]:
    removed = verdict.removed
    return {"indices": removed.tolist(), "labels": verdict.labels[removed].tolist()}


def histograms(groups: Mapping[str, Tensor]) -> dict[str, list[int]]:
    """Counts over the bins of `EDGES`; the last one holds all larger values too."""
    return {
        name: np.histogram(values[values.isfinite()].numpy().clip(0, EDGES[-1]), EDGES)[0].tolist()
        for name, values in groups.items()
    }


def quantiles(values: Tensor) -> list[float] | None:
    known = values[values.isfinite()].numpy()
    return np.percentile(known, (5, 25, 50, 75, 95)).tolist() if len(known) else None


def histogram_distance(first: Sequence[int], second: Sequence[int]) -> float:
    """The KS distance of two histograms with bins of 0.1, for losses of different runs."""
    below = (np.cumsum(counts) / max(1, sum(counts)) for counts in (first, second))
    return float(np.abs(np.subtract(*below)).max())


def ks_distance(a: Tensor, b: Tensor) -> float | None:
    """The greatest difference between the two distribution functions; None if one is empty."""
    first, second = (values[values.isfinite()].sort().values for values in (a, b))
    if not len(first) or not len(second):
        return None
    points = torch.cat((first, second))
    below = (torch.searchsorted(v, points, right=True) / len(v) for v in (first, second))
    return float(torch.sub(*below).abs().max())
