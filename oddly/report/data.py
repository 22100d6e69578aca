"""From a run folder to what its page shows; nothing here knows HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from oddly.records import Run, config_hash
from oddly.report.histogram import ScoreHistogram, bin_scores, name_scores

MAX_SUSPECTS = 50
MAX_CLASSES = 100


@dataclass(frozen=True)
class Fact:
    """One number at a glance."""

    name: str
    value: str
    note: str = ""


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
    score: float | None
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
    histogram: ScoreHistogram | None
    curves: Sequence[Curve]
    suspects: Sequence[Suspect]
    classes: Sequence[ClassCount]
    class_total: int
    unit: str
    units: str
    """What scores are called, one and many."""
    source: str | None
    """Where the counterfactual comes from: "sentinels" or "weights"."""
    draws: int | None
    """How many scores the counterfactual is made of."""
    percentile: float | None
    prune_after: int | None
    truth_known: bool
    footer: str

    @property
    def scores_are_losses(self) -> bool:
        """Whether a column of scores would only repeat the losses."""
        return all(suspect.score == suspect.loss for suspect in self.suspects)

    @classmethod
    def from_run(cls, run: Run) -> RunPage:
        """Read a run, finished or not."""
        # a finished run's summary says all; settings may name what its method never used
        said = run.summary or {k: v for k, v in run.config.items() if isinstance(v, (str, int))}
        counterfactual = run.counterfactual
        verdicts = run.verdicts if run.has_verdicts else None
        truth = run.truth if verdicts is not None else None
        classes = [] if verdicts is None else count_classes(verdicts, truth)
        rule = counterfactual or {}
        prune_after = rule.get("epoch") or said.get("prune_after")
        unit, units = name_scores(counterfactual, verdicts)
        return cls(
            title=f"{said.get('method') or 'a run'} on {said.get('data') or 'unnamed data'}",
            status=describe_status(run, said),
            facts=list_facts(run, said, verdicts),
            settings=list_settings(said),
            histogram=None if verdicts is None else bin_scores(verdicts, counterfactual),
            curves=make_curves(run.metrics, prune_after),
            suspects=[] if verdicts is None else find_suspects(verdicts, truth),
            classes=classes[:MAX_CLASSES],
            class_total=len(classes),
            unit=unit,
            units=units,
            source=rule.get("source"),
            draws=rule.get("draws"),
            percentile=rule.get("percentile"),
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
    noise = said.get("estimated_noise")
    if isinstance(noise, dict) and noise.get("rate") is not None:
        note = "labels that look random"
        if noise.get("low") is not None and noise.get("high") is not None:
            note += f"; {100 * noise['low']:.1f} to {100 * noise['high']:.1f}\N{NO-BREAK SPACE}%"
        facts.append(Fact("Estimated noise", f"{100 * noise['rate']:.1f} %", note))
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
            score=known(row["score"]),
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
    return f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value)


def format_seconds(seconds: float) -> str:
    """A time in the unit a person would use."""
    for limit, unit, size in ((1, "ms", 0.001), (120, "s", 1), (7200, "min", 60)):
        if seconds < limit:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 3600:.1f} h"
