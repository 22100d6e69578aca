"""Write the results of a finished run: verdicts, true labels, model and summary."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor
from torch.utils.data import Dataset

from oddly.core import Verdict
from oddly.core.copies import outvoted
from oddly.data.base import LabelledData
from oddly.data.noise import error_rate
from oddly.engine.build import Parts
from oddly.engine.evaluate import Predictions, predict
from oddly.methods import Judgement
from oddly.pictures import from_pixels, shrink
from oddly.records import (
    DECIDED,
    SAME_PICTURE,
    Run,
    RunWriter,
    VerdictTable,
    choose_stored,
    score_verdict,
    write_atomic,
)

MEASURED_FROM = 300  # examples: estimates from fewer were never compared with the truth


def save_outcome(parts: Parts, writer: RunWriter, seconds: float) -> None:
    """Write everything that a run holds once training is over."""
    data, verdict = parts.data, parts.method.verdict
    predictions = predict(parts.model, parts.train_feed, parts.bf16, parts.context.num_classes)
    table = verdict_table(data, verdict, predictions)
    writer.write_verdicts(table)
    summary = summarise(parts, writer, table, seconds)
    if isinstance(verdict, Verdict):
        writer.write_counterfactual(verdict.origin())
    if data.true_labels is not None:
        truth, given = data.true_labels.numpy(), data.train.labels.numpy()
        writer.write_truth(truth, data.class_names, given)
        summary |= score_verdict(table.keep, table.scores, truth != given)
    if thumbnails := make_thumbnails(data.train.images, table):
        writer.write_thumbnails(thumbnails)
    weights = {name: tensor.contiguous() for name, tensor in parts.model.state_dict().items()}
    write_atomic(writer.path / "model.safetensors", save(weights))
    writer.finish(summary)


def make_thumbnails(images: Tensor | Dataset[Tensor], table: VerdictTable) -> dict[int, bytes]:
    """Small pictures for the run's page, of images in memory; the page can read files itself."""
    if not isinstance(images, Tensor) or images.dtype != torch.uint8:
        return {}  # files, or features
    chosen = choose_stored(table.keep, table.scores).tolist()
    return {i: shrink(from_pixels(images[i].numpy())) for i in chosen}


def verdict_table(
    data: LabelledData, verdict: Verdict | Judgement | None, predictions: Predictions
) -> VerdictTable:
    """One row per training example.

    The suggested label is the prediction of the final network, which has not trained on removed
    examples. A method without a verdict keeps everything; its scores are then the final network's
    losses.
    """
    losses = scores = predictions.losses
    keep, percentiles, threshold = torch.ones(len(losses), dtype=torch.bool), None, None
    if verdict is not None:
        scores, keep, threshold = verdict.scores, verdict.keep, verdict.threshold
    if isinstance(verdict, Verdict):
        losses = verdict.losses
        percentiles = verdict.percentiles.numpy()
    keep, reasons = (keep, None) if verdict is None else overrule(keep, data)
    return VerdictTable(
        ids=data.train.ids,
        given_labels=data.train.labels.numpy(),
        losses=losses.numpy(),
        scores=scores.numpy(),
        counterfactual_percentiles=percentiles,
        threshold=threshold,
        keep=keep.numpy(),
        suggested_labels=predictions.labels.numpy(),
        suggested_confidences=predictions.confidences.numpy(),
        class_names=data.class_names,
        reasons=reasons,
    )


def overrule(keep: Tensor, data: LabelledData) -> tuple[Tensor, list[str | None] | None]:
    """`keep`, corrected by people's decisions and by copies; and the reasons, None if unchanged."""
    nothing = torch.zeros(len(keep), dtype=torch.bool)
    decided = nothing if data.decided is None else data.decided
    against = nothing
    if data.pictures is not None:
        against = outvoted(data.pictures, data.train.labels, keep.cpu(), data.decided)
    if not bool((decided | against).any()):
        return keep, None
    pairs = zip(decided.tolist(), against.tolist(), strict=True)
    reasons = [DECIDED if sure else SAME_PICTURE if wrong else None for sure, wrong in pairs]
    return (keep.cpu() | decided) & ~against, reasons


def summarise(
    parts: Parts, writer: RunWriter, table: VerdictTable, seconds: float
) -> dict[str, Any]:
    config = parts.config
    last = Run(writer.path).metrics[-1]
    realised = error_rate(parts.data)
    return {
        "method": config.method,
        "data": parts.data.name,
        "model": config.model,
        "epochs": parts.context.epochs,
        "passes": sum(stage.epochs * stage.passes for stage in parts.stages),
        "stages": [vars(stage) for stage in parts.stages],
        "examples": len(parts.data.train),
        "classes": len(parts.data.class_names),
        "noise": {"kind": config.noise_kind, "rate": config.noise, "realised": realised},
        "mirror_test": config.mirror_test,
        "test_accuracy": last.get("test_accuracy"),
        "test_accuracy_top5": last.get("test_accuracy_top5"),
        "removed": int((~table.keep).sum()),
        "removed_fraction": float((~table.keep).mean()),
        **describe_verdict(parts.method.verdict, parts.data.class_names),
        "seconds": seconds,
        "denoise_seconds": parts.method.extra_seconds,
    }


def describe_verdict(
    verdict: Verdict | Judgement | None, class_names: Sequence[str]
) -> dict[str, Any]:
    """The verdict's part of the summary; the same keys without one."""
    if not isinstance(verdict, Verdict):
        names = ["threshold", "prune_after", "percentile", "counterfactual", "readmitted"]
        names += ["estimated_noise", "contrast", "doubt", "by_rule"]
        said: dict[str, Any] = {}
        if verdict:
            said = {"threshold": verdict.threshold, "rule": verdict.rule}
            said["doubt"] = verdict.tell_doubt()
        return {**dict.fromkeys(names), "spared_classes": [], "one_way": [], "called": [], **said}
    named = {
        "spared_classes": [class_names[k] for k in verdict.spared_classes],
        "one_way": [[class_names[k] for k in pair] for pair in verdict.one_way],
        "called": [[class_names[k] for k in pair] for pair in verdict.called],
        "by_rule": verdict.tell_by_rule(class_names),
    }
    said = verdict.summary()
    if len(verdict.keep) < MEASURED_FROM:
        # A handful of planted labels is too few for an estimate and for the contrast …
        said["estimated_noise"] = None
        if not said["doubt"]:  # … but the doubt quotes the contrast
            said["contrast"] = None
    return {**said, **named}


def describe_device(device: torch.device) -> dict[str, Any]:
    """The training device, for environment.json."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": device.type, "device_name": name, "threads": torch.get_num_threads()}
