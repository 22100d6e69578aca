"""A run in numbers, as text: for the top of its page, and for the bottom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from oddly.errors import count
from oddly.records import Run, config_hash, count_unread, read_list, read_twins
from oddly.report.histogram import find_threshold
from oddly.report.words import NBSP, shorten


@dataclass(frozen=True)
class Fact:
    """One number with its name and a note."""

    name: str
    value: str
    note: str = ""


def describe_run(said: dict[str, Any]) -> str:
    """How the run was trained, in one line."""
    parts = [str(said["method"])] if said.get("method") else []
    parts += [name_model(said)] if said.get("model") else []
    parts += [count(said["epochs"], "epoch")] if said.get("epochs") else []
    return " · ".join(parts)


def name_model(said: dict[str, Any]) -> str:
    """The network; for a head, also the backbone."""
    if said.get("backbone") and not said.get("fine_tune"):
        return f"{said['backbone']}, frozen, with a head"
    return str(said["model"])


def list_facts(
    run: Run, said: dict[str, Any], verdicts: pd.DataFrame | None, prune_after: int | None
) -> list[Fact]:
    """The numbers a reader looks for first; unknown ones are left out."""
    return [
        *list_images(said, verdicts),
        *list_left_out(run),
        *estimated_noise(said, verdicts),
        *list_accuracy(run, prune_after),
        *list_threshold(said, verdicts, prune_after),
        *list_time(said),
    ]


def list_images(said: dict[str, Any], verdicts: pd.DataFrame | None) -> list[Fact]:
    """The number of images, and of suspects if the run has a verdict."""
    if verdicts is None:
        return []
    total, removed = len(verdicts), int((~verdicts["keep"]).sum())
    classes = int(said.get("classes") or verdicts["given_label"].nunique())
    facts = [Fact("Images", f"{total:,}", f"in {classes:,} classes")]
    if find_threshold(verdicts) is not None or said.get("rule"):
        share = f"{100 * removed / max(total, 1):.1f}{NBSP}% of the images"
        facts.append(Fact("Suspects", f"{removed:,}", share))
    return facts


def list_left_out(run: Run) -> list[Fact]:
    """What `oddly clean` could not read, and the pictures that occur more than once."""
    facts = []
    unread = zip(count_unread(run.path), ("image", "folder"), strict=True)
    if told := ", ".join(count(number, kind) for number, kind in unread if number):
        facts.append(Fact("Left out", told, "could not be read (unreadable.csv)"))
    groups = {row.get("group") for row in read_list(run.path / "duplicates.csv")}
    if groups:
        conflicting = len({twin.group for twin in read_twins(run.path).values()})
        note = "more than once"
        note += f", {conflicting:,} of them with different labels" if conflicting else ""
        facts.append(Fact("Duplicates", count(len(groups), "picture"), f"{note} (duplicates.csv)"))
    return facts


def has_interval(noise: object) -> bool:
    """Whether an estimate has both bounds."""
    return isinstance(noise, dict) and None not in (noise.get("low"), noise.get("high"))


def estimated_noise(said: dict[str, Any], verdicts: pd.DataFrame | None) -> list[Fact]:
    """The run's estimate of the share of wrong labels, or why there is none."""
    noise = said.get("estimated_noise")
    if not isinstance(noise, dict) or noise.get("rate") is None:
        if verdicts is None or not said.get("counterfactual"):
            return []
        few = said["counterfactual"] == "sentinels"
        why = "too few images" if few else "no labels were planted"
        return [Fact("Estimated noise", "–", why)]
    note = "labels that look random"
    if has_interval(noise):
        note = f"between {100 * noise['low']:.1f} and {100 * noise['high']:.1f}{NBSP}%"
    note += ", unreliable" if said.get("doubt") else ""
    return [Fact("Estimated noise", f"{100 * noise['rate']:.1f}{NBSP}%", note)]


def list_accuracy(run: Run, prune_after: int | None) -> list[Fact]:
    """The test accuracy at the end, and at the time of pruning."""
    if run.test_accuracy is None:
        return []
    before = [
        row["test_accuracy"]
        for row in run.metrics
        if row["epoch"] == prune_after and row.get("test_accuracy") is not None
    ]
    note = f"{before[0]:.2f}{NBSP}% before pruning" if before else "after the last epoch"
    return [Fact("Test accuracy", f"{run.test_accuracy:.2f}{NBSP}%", note)]


def list_threshold(
    said: dict[str, Any], verdicts: pd.DataFrame | None, prune_after: int | None
) -> list[Fact]:
    """The threshold, where it comes from, and when it was applied."""
    threshold = None if verdicts is None else find_threshold(verdicts)
    if threshold is None:
        return []
    sources = {"sentinels": "from planted labels", "weights": "from the weights"}
    otherwise = f"of {said.get('method')}" if said.get("rule") else "from random labels"
    note = sources.get(str(said.get("counterfactual")), otherwise)
    note += f", epoch {prune_after}" if prune_after is not None else ""
    return [Fact("Threshold", shorten(threshold), note)]


def list_time(said: dict[str, Any]) -> list[Fact]:
    """The training time, and how much of it was denoising."""
    if said.get("seconds") is None:
        return []
    seconds, own = said["seconds"], said.get("denoise_seconds")
    note = f"of which {format_seconds(own)} denoising" if own else ""
    note += f" ({100 * own / seconds:.1f}{NBSP}%)" if own and seconds else ""
    if said.get("backbone") and not said.get("fine_tune"):
        note = "excluding reading the images"
    return [Fact("Training time", format_seconds(seconds), note)]


def list_scores(said: dict[str, Any]) -> list[Fact]:
    """The verdict compared with the true labels; without a verdict, the ranking only."""
    facts = []
    judged = said.get("threshold") is not None or said.get("rule")
    for key, name, note in (
        ("precision", "Precision", "suspects that are wrong"),
        ("recall", "Recall", "wrong labels found"),
        ("f1", "F1", "precision and recall combined"),
        ("average_precision", "Average precision", "of the ranking"),
    ):
        if said.get(key) is not None and (judged or key == "average_precision"):
            facts.append(Fact(name, f"{100 * said[key]:.1f}{NBSP}%", note))
    return facts


def list_settings(said: dict[str, Any]) -> list[Fact]:
    """The settings of the run; unknown ones are left out."""
    keys = ("model", "epochs", "prune_after", "percentile")
    names = ("Model", "Epochs", "Pruned after epoch", "Target percentile")
    said = {**said, "model": name_model(said)} if said.get("model") else said
    pairs = [(name, said.get(key)) for key, name in zip(keys, names, strict=True)]
    facts = [Fact(name, shorten(value, 4)) for name, value in pairs if value is not None]
    noise = said.get("noise")
    if isinstance(noise, dict) and noise.get("kind") and noise.get("rate"):
        text = f"{noise['kind']}, {100 * noise['rate']:.3g}{NBSP}%"
        realised = noise.get("realised")
        note = "" if realised is None else f"{100 * realised:.1f}{NBSP}% of the labels are wrong"
        facts.append(Fact("Noise added", text, note))
    return facts


def describe_surroundings(run: Run) -> str:
    """One line with settings, versions and hardware."""
    around = run.environment
    packages = around.get("packages") or {}
    parts = [f"settings {config_hash(run.config)}"]
    parts += [f"oddly {around['oddly']}"] if around.get("oddly") else []
    parts += [f"Python {around['python']}"] if around.get("python") else []
    parts += [f"torch {packages['torch']}"] if packages.get("torch") else []
    parts += [str(around[key]) for key in ("device", "cpu_model") if around.get(key)]
    return " · ".join(parts)


def format_seconds(seconds: float) -> str:
    """A time in the unit a person would use."""
    for limit, unit, size in ((1, "ms", 0.001), (120, "s", 1), (7200, "min", 60)):
        if seconds < limit:
            return f"{seconds / size:.3g}{NBSP}{unit}"
    return f"{seconds / 3600:.1f}{NBSP}h"
