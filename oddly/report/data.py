"""From a run folder to what its page shows; nothing here knows HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oddly.records import Run, config_hash

MAX_SUSPECTS = 50
MAX_CLASSES = 100
BINS = 40


@dataclass(frozen=True)
class Fact:
    """One number at a glance."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class LossHistogram:
    """How many examples have which loss; the last bin also holds everything above it."""

    edges: NDArray[np.float64]
    """(bins + 1,); the threshold, where there is one, is an edge."""
    kept: NDArray[np.int64]
    removed: NDArray[np.int64]
    counterfactual: NDArray[np.float64] | None
    """Per bin, scaled to the area of the removed bars (of all bars where nothing was removed)."""
    threshold: float | None
    has_more: bool
    """Whether the last bin holds losses above its upper edge."""


@dataclass(frozen=True)
class Curve:
    """One number per epoch; None where an epoch has none."""

    name: str
    epochs: Sequence[int]
    values: Sequence[float | None]
    prune_after: int | None


@dataclass(frozen=True)
class Suspect:
    """One row of the table of suspects; None where the run does not say."""

    id: str
    given: str
    suggested: str | None
    true: str | None
    confidence: float | None
    loss: float | None
    percentile: float | None
    keep: bool


@dataclass(frozen=True)
class ClassCount:
    """What the verdict did to one class."""

    name: str
    examples: int
    removed: int
    mislabelled: int | None

    @property
    def share(self) -> float:
        """Percent removed."""
        return 100 * self.removed / self.examples


@dataclass(frozen=True)
class RunPage:
    """Everything the template may use."""

    title: str
    status: str
    facts: Sequence[Fact]
    settings: Sequence[Fact]
    histogram: LossHistogram | None
    curves: Sequence[Curve]
    suspects: Sequence[Suspect]
    classes: Sequence[ClassCount]
    class_total: int
    percentile: float | None
    prune_after: int | None
    truth_known: bool
    footer: str

    @classmethod
    def from_run(cls, run: Run) -> RunPage:
        """Read a run, finished or not."""
        # a finished run's summary says all; settings may name what its method never used
        said = run.summary or {k: v for k, v in run.config.items() if isinstance(v, (str, int))}
        counterfactual = run.counterfactual
        verdicts = run.verdicts if run.has_verdicts else None
        truth = run.truth if verdicts is not None else None
        classes = [] if verdicts is None else count_classes(verdicts, truth)
        prune_after = (counterfactual or {}).get("epoch") or said.get("prune_after")
        return cls(
            title=f"{said.get('method') or 'a run'} on {said.get('data') or 'unnamed data'}",
            status=describe_status(run, said),
            facts=list_facts(run, said, verdicts),
            settings=list_settings(said),
            histogram=None if verdicts is None else bin_losses(verdicts, counterfactual),
            curves=make_curves(run.metrics, prune_after),
            suspects=[] if verdicts is None else find_suspects(verdicts, truth),
            classes=classes[:MAX_CLASSES],
            class_total=len(classes),
            percentile=(counterfactual or {}).get("percentile"),
            prune_after=prune_after,
            truth_known=truth is not None,
            footer=describe_surroundings(run),
        )


def describe_status(run: Run, said: dict[str, Any]) -> str:
    """Finished, or how far it came."""
    epoch = run.metrics[-1]["epoch"] if run.metrics else 0
    of = f" of {said['epochs']}" if said.get("epochs") else ""
    return "finished" if run.is_done else f"not finished: {epoch}{of} epochs so far"


def list_facts(run: Run, said: dict[str, Any], verdicts: pd.DataFrame | None) -> list[Fact]:
    """The numbers a reader looks for first; what is not known is left out."""
    facts = []
    if run.test_accuracy is not None:
        facts.append(Fact("Test accuracy", f"{run.test_accuracy:.2f} %", "last epoch"))
    if verdicts is not None:
        total, removed = len(verdicts), int((~verdicts["keep"]).sum())
        share = 100 * removed / max(total, 1)
        facts.append(Fact("Removed", f"{share:.1f} %", f"{removed:,} of {total:,} examples"))
    for key, name, note in (
        ("precision", "Precision", "removed ones that are wrong"),
        ("recall", "Recall", "wrong ones that are removed"),
        ("f1", "F1", "of both"),
        ("average_precision", "Average precision", "of the ranking"),
    ):
        if said.get(key) is not None:
            facts.append(Fact(name, f"{100 * said[key]:.1f} %", note))
    if said.get("seconds") is not None:
        seconds, own = said["seconds"], said.get("denoise_seconds")
        note = "" if own is None else f"{format_seconds(own)} of it denoising"
        facts.append(Fact("Time", format_seconds(seconds), note))
    return facts


def list_settings(said: dict[str, Any]) -> list[Fact]:
    """How the run was set up; what is not known is left out."""
    keys = ("model", "epochs", "prune_after", "percentile", "threshold")
    names = ("Model", "Epochs", "Pruned after epoch", "Percentile", "Threshold")
    pairs = [(name, said.get(key)) for key, name in zip(keys, names, strict=True)]
    facts = [Fact(name, format_number(value)) for name, value in pairs if value is not None]
    noise = said.get("noise")
    if isinstance(noise, dict) and noise.get("kind") and noise.get("rate"):
        text = f"{noise['kind']}, {100 * noise['rate']:.3g} %"
        realised = noise.get("realised")
        note = "" if realised is None else f"{100 * realised:.1f} % of the labels are wrong"
        facts.append(Fact("Noise added", text, note))
    return facts


def bin_losses(
    verdicts: pd.DataFrame, counterfactual: dict[str, Any] | None
) -> LossHistogram | None:
    """Histogram of kept and removed losses, the counterfactual rebinned to the same bins."""
    losses = verdicts["loss"].to_numpy(np.float64)
    seen = np.isfinite(losses)
    losses, keep = losses[seen], verdicts["keep"].to_numpy(np.bool_)[seen]
    if not len(losses):
        return None
    threshold = known(verdicts["threshold"].iloc[0])
    histogram = (counterfactual or {}).get("histogram")
    high = (counterfactual or {}).get("percentiles", {}).get("99") or 0
    most = max(1.2 * (threshold or 0), high)  # what must be seen; a few huge losses need not
    top = max(min(float(np.percentile(losses, 99.5)), 4 * most or np.inf), most, 1e-6)
    width = top / BINS
    if threshold is not None and threshold > width:
        width = threshold / round(threshold / width)  # so that the threshold is an edge
    edges = np.arange(int(np.ceil(top / width - 1e-9)) + 1, dtype=np.float64) * width
    inside = np.clip(losses, edges[0], edges[-1])
    kept, removed = (np.histogram(inside[mask], edges)[0] for mask in (keep, ~keep))
    area = int(removed.sum()) or int(kept.sum())
    return LossHistogram(
        edges=edges,
        kept=kept,
        removed=removed,
        counterfactual=rebin(histogram, edges, area) if histogram else None,
        threshold=threshold,
        has_more=bool(losses.max() > edges[-1]),
    )


def rebin(
    histogram: dict[str, Any], edges: NDArray[np.float64], area: float
) -> NDArray[np.float64] | None:
    """Counts over other bins, spread evenly inside the old ones and scaled to `area` in all."""
    counts = np.asarray(histogram["counts"], np.float64)
    if not counts.sum() > 0:
        return None
    below = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
    at_edges = np.interp(edges, np.asarray(histogram["edges"], np.float64), below)
    return np.asarray(area * np.diff(at_edges), np.float64)


def make_curves(metrics: Sequence[dict[str, Any]], prune_after: int | None) -> list[Curve]:
    """A curve for each number that at least one epoch has."""
    epochs = [row["epoch"] for row in metrics]
    names = {
        "test_accuracy": "Test accuracy, %",
        "train_loss": "Training loss",
        "lr": "Learning rate",
    }
    curves = [
        Curve(name, epochs, [row.get(key) for row in metrics], prune_after)
        for key, name in names.items()
    ]
    return [curve for curve in curves if any(value is not None for value in curve.values)]


def find_suspects(verdicts: pd.DataFrame, truth: pd.DataFrame | None) -> list[Suspect]:
    """The most suspicious examples, most suspicious first."""
    scores = np.nan_to_num(verdicts["score"].to_numpy(np.float64), nan=-np.inf)
    first = np.argsort(-scores, kind="stable")[:MAX_SUSPECTS]
    first = first[np.isfinite(scores[first])]
    true = [None] * len(first) if truth is None else list(truth["true_name"].iloc[first])
    return [
        Suspect(
            id=row["id"],
            given=known(row["given_name"]) or str(row["given_label"]),
            suggested=known(row["suggested_name"]),
            true=known(name),
            confidence=known(row["suggested_confidence"]),
            loss=known(row["loss"]),
            percentile=known(row["counterfactual_percentile"]),
            keep=bool(row["keep"]),
        )
        for row, name in zip(verdicts.iloc[first].to_dict("records"), true, strict=True)
    ]


def count_classes(verdicts: pd.DataFrame, truth: pd.DataFrame | None) -> list[ClassCount]:
    """One row per class that has examples, the most pruned first."""
    labels = verdicts["given_label"].to_numpy(np.int64)
    present, first = np.unique(labels, return_index=True)
    names = list(verdicts["given_name"].iloc[first])
    examples = np.bincount(labels)
    removed = np.bincount(labels, ~verdicts["keep"].to_numpy(np.bool_)).astype(int)
    wrong = None if truth is None else np.bincount(labels, truth["mislabelled"]).astype(int)
    counts = [
        ClassCount(
            name=known(name) or str(label),
            examples=int(examples[label]),
            removed=int(removed[label]),
            mislabelled=None if wrong is None else int(wrong[label]),
        )
        for label, name in zip(present.tolist(), names, strict=True)
    ]
    return sorted(counts, key=lambda count: -count.share)


def describe_surroundings(run: Run) -> str:
    """One line: which code, which versions, which machine."""
    around = run.environment
    packages = around.get("packages") or {}
    parts = [f"settings {config_hash(run.config)}"]
    parts += [f"oddly {around['oddly']}"] if around.get("oddly") else []
    parts += [f"Python {around['python']}"] if around.get("python") else []
    parts += [f"torch {packages['torch']}"] if packages.get("torch") else []
    parts += [str(around[key]) for key in ("device", "cpu_model") if around.get(key)]
    return " · ".join(parts)


def known(value: Any) -> Any:
    """The value, or None for one that is missing (NaN, null)."""
    return None if pd.isna(value) else value


def format_number(value: Any) -> str:
    """Floats in four digits, everything else as it is."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def format_seconds(seconds: float) -> str:
    """A time in the unit a person would use."""
    for limit, unit, size in ((1, "ms", 0.001), (120, "s", 1), (7200, "min", 60)):
        if seconds < limit:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 3600:.1f} h"
