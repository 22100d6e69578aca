"""Read a run folder into the data for its page; without any HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from oddly.errors import InputError
from oddly.records import Run
from oddly.report.classes import ClassCount, Matrix, count_classes, count_pairs, cut, name_classes
from oddly.report.facts import (
    Fact,
    describe_run,
    describe_surroundings,
    has_interval,
    list_facts,
    list_scores,
    list_settings,
)
from oddly.report.gallery import Gallery, Progress
from oddly.report.histogram import ScoreHistogram, WhatIf, bin_scores, move_threshold, name_scores
from oddly.report.words import tell_limits, tell_outcome, tell_threshold

MAX_CLASSES = 200
COLUMNS = {
    *("id", "given_label", "given_name", "score", "counterfactual_percentile", "threshold"),
    *("keep", "suggested_label", "suggested_name", "suggested_confidence"),
}


@dataclass(frozen=True)
class Curve:
    """One number per epoch, or None."""

    name: str
    epochs: Sequence[int]
    values: Sequence[float | None]
    prune_after: int | None


@dataclass(frozen=True)
class Judged:
    """What a run says about single examples."""

    histogram: ScoreHistogram | None
    """None if no example has a score."""
    whatif: WhatIf | None
    """None if there is no threshold to move."""
    class_names: dict[int, str]
    classes: Sequence[ClassCount]
    class_total: int
    matrix: Matrix | None
    gallery: Gallery
    truth_known: bool

    @property
    def tested_by_class(self) -> bool:
        """Whether there is a test accuracy by class."""
        return any(count.accuracy_after is not None for count in self.classes)

    @property
    def tested_before(self) -> bool:
        """Whether there is also one from before pruning."""
        return any(count.accuracy_before is not None for count in self.classes)

    @classmethod
    def from_run(
        cls, run: Run, images: Path | None = None, progress: Progress | None = None
    ) -> Judged | None:
        """Read the verdicts; None if the run has none yet."""
        if not run.has_verdicts:
            return None
        verdicts, truth, rule = check_columns(run), run.truth, run.counterfactual
        names = name_classes(verdicts)
        classes = count_classes(verdicts, truth, names, run.metrics)
        histogram = bin_scores(verdicts, rule)
        unit, _ = name_scores(rule, verdicts)
        return cls(
            histogram=histogram,
            whatif=move_threshold(verdicts, truth, rule, histogram) if histogram else None,
            class_names=names,
            classes=classes[:MAX_CLASSES],
            class_total=len(classes),
            matrix=count_pairs(verdicts, names),
            gallery=Gallery.from_run(run, unit, images, progress),
            truth_known=truth is not None,
        )


@dataclass(frozen=True)
class RunPage:
    """Everything the template may use."""

    title: str
    subtitle: str
    outcome: str
    """The run in one sentence."""
    notes: Sequence[str]
    """Warnings: systematically wrong labels, and why not to trust the verdict."""
    facts: Sequence[Fact]
    scores: Sequence[Fact]
    """How good the verdict is, if true labels are known."""
    settings: Sequence[Fact]
    origin: Sequence[str]
    """Sentences: where the threshold came from."""
    can_tell: Sequence[str]
    cannot_tell: Sequence[str]
    judged: Judged | None
    curves: Sequence[Curve]
    unit: str
    units: str
    """What scores are called, singular (`unit`) and plural."""
    source: str | None
    """Where the counterfactual comes from: "sentinels", "weights" or "wrong_label"."""
    footer: str

    @classmethod
    def from_run(
        cls, run: Run, images: Path | None = None, progress: Progress | None = None
    ) -> RunPage:
        """Read a run, finished or not; image files are below `images` or where the run says."""
        # prefer the summary of a finished run: settings may include some that were not used
        said = run.summary or {k: v for k, v in run.config.items() if isinstance(v, (str, int))}
        said = {name: run.config.get(name) for name in ("backbone", "fine_tune")} | said
        judged = Judged.from_run(run, images, progress)
        verdicts = run.verdicts if judged else None
        rule = run.counterfactual or {}
        prune_after = rule.get("epoch") or said.get("prune_after")
        settings = run.config.get("settings")
        chosen = isinstance(settings, dict) and settings.get("prune_after") is not None
        truth_known = judged is not None and judged.truth_known
        own_rule, by_rule = run.summary.get("rule"), run.by_rule is not None
        interval = has_interval(said.get("estimated_noise"))
        can_tell, cannot_tell = tell_limits(bool(rule), truth_known, own_rule, by_rule, interval)
        unit, units = name_scores(run.counterfactual, verdicts)
        return cls(
            title=cut(str(said.get("data") or "unnamed data")),
            subtitle=describe_run(said),
            outcome=tell_outcome(run, verdicts),
            notes=run.notes,
            facts=list_facts(run, said, verdicts, prune_after),
            scores=list_scores(said),
            settings=list_settings(said),
            origin=tell_threshold(rule, said, chosen),
            can_tell=can_tell,
            cannot_tell=cannot_tell,
            judged=judged,
            curves=make_curves(run.metrics, prune_after),
            unit=unit,
            units=units,
            source=rule.get("source"),
            footer=describe_surroundings(run),
        )


def check_columns(run: Run) -> pd.DataFrame:
    """The verdicts; raises if columns are missing that the page needs."""
    verdicts, truth = run.verdicts, run.truth
    missing = sorted(COLUMNS - set(verdicts.columns))
    if missing:
        raise InputError(
            f"{run.path / 'verdicts.parquet'}: no column {missing[0]}; use the version that wrote"
            " it, or train again"
        )
    if truth is not None and len(truth) != len(verdicts):
        raise InputError(
            f"{run.path / 'truth.parquet'}: {len(truth):,} rows for {len(verdicts):,} verdicts;"
            " train again with --overwrite"
        )
    return verdicts


def make_curves(metrics: Sequence[dict[str, Any]], prune_after: int | None) -> list[Curve]:
    """A curve for each number that is known for at least one epoch."""
    epochs = [row["epoch"] for row in metrics]
    names = {
        "lr": "Learning rate",
        "test_accuracy": "Test accuracy, %",
        "train_loss": "Training loss",
    }
    curves = [
        Curve(name, epochs, [row.get(key) for row in metrics], prune_after)
        for key, name in names.items()
    ]
    return [curve for curve in curves if any(value is not None for value in curve.values)]
