"""What the losses of all examples look like at a milestone of a run, in a few numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from oddly.core.counterfactual import Counterfactual, draw_losses
from oddly.core.verdict import judge
from oddly.data.base import LabelledData
from oddly.engine.checkpoint import load_checkpoint, milestone_path
from oddly.errors import InputError
from oddly.records import score_verdict

PERCENTILES = (1.0, 5.0, 10.0, 30.0, 50.0, 80.0)
BINS = 80
DRAWS = 20_000


def look(folder: Path, epoch: int, data: LabelledData, seed: int) -> dict[str, Any]:
    """Losses of epoch `epoch` against q_n: histograms, KS distances, what each p would remove.

    `data`: under the given labels the run was trained with.
    """
    state = load_checkpoint(folder, milestone_path(folder, epoch).name)
    if state is None:
        raise InputError(f"{folder} has kept no checkpoint of epoch {epoch}")
    losses = state["method"]["denoiser"]["ledger"]["values"]
    drawn = Counterfactual.from_losses(_draw(state["model"], seed), "weights")
    wrong = torch.zeros(len(losses), dtype=torch.bool)
    if data.true_labels is not None:
        wrong = data.train.labels != data.true_labels
    groups = {"normal": losses[~wrong], "noise": losses[wrong], "simulated": drawn.losses}
    return {
        "histogram": histograms(groups),
        "quantiles": {name: quantiles(values) for name, values in groups.items()},
        "ks_noise_simulated": ks_distance(groups["noise"], groups["simulated"]),
        "ks_noise_normal": ks_distance(groups["noise"], groups["normal"]),
        "by_percentile": {
            f"{p:g}": _judge(losses, drawn, p, epoch, data, wrong) for p in PERCENTILES
        },
    }


def _draw(weights: Mapping[str, Tensor], seed: int) -> Tensor:
    """q_n from the saved final layer, as the run itself would have drawn it."""
    weight, bias = weights["fc.weight"], weights["fc.bias"]  # so called in all networks of ours
    head = nn.Linear(weight.shape[1], weight.shape[0])
    head.load_state_dict({"weight": weight, "bias": bias})
    return draw_losses(head, DRAWS, torch.Generator().manual_seed(seed))


def _judge(
    losses: Tensor,
    drawn: Counterfactual,
    percentile: float,
    epoch: int,
    data: LabelledData,
    wrong: Tensor,
) -> dict[str, Any]:
    try:
        labels = data.train.labels
        classes = len(data.class_names)
        verdict = judge(losses, losses, labels, drawn, percentile, epoch, classes)
    except InputError as error:  # every loss above the threshold: too early for this p
        return {"refused": str(error)}
    scored = score_verdict(verdict.keep.numpy(), verdict.scores.numpy(), wrong.numpy())
    return {
        "threshold": verdict.threshold,
        "removed": verdict.removed_fraction,
        "precision": scored["precision"],
        "recall": scored["recall"],
        "f1": scored["f1"],
    }


def histograms(groups: Mapping[str, Tensor]) -> dict[str, Any]:
    """Counts over common bins, from 0 to what 99.5 % of all values stay below."""
    everything = torch.cat([values[values.isfinite()] for values in groups.values()])
    top = float(np.percentile(everything.numpy(), 99.5)) if len(everything) else 1.0
    edges = np.linspace(0, max(top, 1e-3), BINS + 1)
    counts = {
        name: np.histogram(values[values.isfinite()].numpy(), edges)[0].tolist()
        for name, values in groups.items()
    }
    return {"edges": edges.tolist(), "counts": counts}


def quantiles(values: Tensor, at: Sequence[int] = (5, 25, 50, 75, 95)) -> list[float] | None:
    known = values[values.isfinite()].numpy()
    return np.percentile(known, at).tolist() if len(known) else None


def ks_distance(a: Tensor, b: Tensor) -> float | None:
    """The greatest difference between the two distribution functions; None where one is empty."""
    first, second = (values[values.isfinite()].sort().values for values in (a, b))
    if not len(first) or not len(second):
        return None
    points = torch.cat((first, second))
    below = (torch.searchsorted(v, points, right=True) / len(v) for v in (first, second))
    return float(torch.sub(*below).abs().max())
