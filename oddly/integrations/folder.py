"""A verdict as a run folder, for `oddly report` and `oddly review`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from oddly.core import Verdict
from oddly.errors import InputError
from oddly.records import Run, RunWriter, VerdictTable, environment


def save_run(
    verdict: Verdict | None,
    path: Path | str,
    class_names: Sequence[str],
    ids: Sequence[str] | None = None,
    data: Path | str | None = None,
    predictions: Tensor | None = None,
    overwrite: bool = False,
) -> Run:
    """Write what `oddly report PATH` and `oddly review PATH` read.

    `ids` name the examples, in the dataset's order; where they are image files relative to the
    folder `data`, the pages show them. `predictions` (N,) are the classes that your finished
    network sees in the training images: the labels it suggests.
    """
    if verdict is None:
        raise InputError("there is no verdict to save: training ended before E")
    names = [str(index) for index in range(len(verdict.keep))] if ids is None else list(ids)
    if len(names) != len(verdict.keep):
        raise InputError(f"{len(names)} ids for {len(verdict.keep)} examples")
    if predictions is None:
        predictions = torch.full_like(verdict.labels, -1)
    config = {"method": "odd", "data": None if data is None else str(data)}
    writer = RunWriter.create(path, config, environment(), overwrite)
    writer.write_verdicts(
        VerdictTable(
            ids=names,
            given_labels=verdict.labels.numpy(),
            losses=verdict.losses.numpy(),
            scores=verdict.scores.numpy(),
            counterfactual_percentiles=verdict.counterfactual.percentile_of(verdict.scores).numpy(),
            threshold=verdict.threshold,
            keep=verdict.keep.numpy(),
            suggested_labels=predictions.cpu().numpy(),
            suggested_confidences=torch.full(verdict.keep.shape, torch.nan).numpy(),
            class_names=class_names,
        )
    )
    found = {"percentile": verdict.percentile, "threshold": verdict.threshold}
    about = {**verdict.counterfactual.summary(), **found, "epoch": verdict.epoch}
    writer.write_counterfactual(about)
    writer.finish({**config, **found, **_summarise(verdict), "classes": len(class_names)})
    return Run(path)


def _summarise(verdict: Verdict) -> dict[str, Any]:
    rates = verdict.noise_rate
    return {
        "examples": len(verdict.keep),
        "removed": verdict.num_removed,
        "removed_fraction": verdict.removed_fraction,
        "prune_after": verdict.epoch,
        "counterfactual": verdict.counterfactual.source,
        "estimated_noise": rates and dict(zip(("rate", "low", "high"), rates, strict=True)),
    }
