"""What the verdict removed from each class, and which classes it confuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

MATRIX_SIDE = 20  # classes; more would not fit on a screen
LONGEST = 200  # characters of a name


@dataclass(frozen=True)
class ClassCount:
    """One class by its given label; values are None if the run does not have them."""

    label: int
    name: str
    examples: int
    removed: int
    mislabelled: int | None
    accuracy_before: float | None
    """In percent, on its test images, after the epoch of pruning."""
    accuracy_after: float | None
    """In percent, at the end of training."""

    @property
    def share(self) -> float:
        """Percent removed."""
        return 100 * self.removed / self.examples


@dataclass(frozen=True)
class Matrix:
    """How many suspects have which given (row) and which suggested label (column)."""

    labels: Sequence[int]
    names: Sequence[str]
    counts: Sequence[Sequence[int]]
    left_out: int
    """Number of suspects whose classes are not in the matrix."""

    @property
    def most(self) -> int:
        """The largest count, for shading."""
        return max(max(row) for row in self.counts)


def name_classes(verdicts: pd.DataFrame) -> dict[int, str]:
    """The name of every label that occurs, or its number if it has no name."""
    names: dict[int, str] = {}
    for kind in ("suggested", "given"):
        pairs = verdicts[[f"{kind}_label", f"{kind}_name"]].drop_duplicates(f"{kind}_label")
        labels, texts = pairs[f"{kind}_label"].tolist(), pairs[f"{kind}_name"].tolist()
        names |= {
            int(label): str(label) if pd.isna(text) else cut(str(text))
            for label, text in zip(labels, texts, strict=True)
            if label >= 0
        }
    return dict(sorted(names.items()))


def cut(name: str) -> str:
    """Shorten long names in the middle; their end is where paths differ."""
    return (
        name if len(name) <= LONGEST else f"{name[: LONGEST // 4]}…{name[1 - LONGEST * 3 // 4 :]}"
    )


def count_classes(
    verdicts: pd.DataFrame,
    truth: pd.DataFrame | None,
    names: dict[int, str],
    metrics: Sequence[dict[str, Any]] = (),
) -> list[ClassCount]:
    """One row per class that has examples, the most pruned first."""
    labels = verdicts["given_label"].to_numpy(np.int64)
    examples = np.bincount(labels)
    removed = np.bincount(labels, ~verdicts["keep"].to_numpy(np.bool_)).astype(int)
    wrong = None if truth is None else np.bincount(labels, truth["mislabelled"]).astype(int)
    before, after = find_accuracies(metrics)
    counts = [
        ClassCount(
            label=label,
            name=names[label],
            examples=int(examples[label]),
            removed=int(removed[label]),
            mislabelled=None if wrong is None else int(wrong[label]),
            accuracy_before=before[label] if label < len(before) else None,
            accuracy_after=after[label] if label < len(after) else None,
        )
        for label in np.unique(labels).tolist()
    ]
    return sorted(counts, key=lambda count: -count.share)


def find_accuracies(
    metrics: Sequence[dict[str, Any]],
) -> tuple[Sequence[float | None], Sequence[float | None]]:
    """Test accuracy by class before and after pruning; empty if the run has none."""
    known = [row["test_accuracy_by_class"] for row in metrics if row.get("test_accuracy_by_class")]
    return (known[0] if len(known) > 1 else []), (known[-1] if known else [])


def count_pairs(verdicts: pd.DataFrame, names: dict[int, str]) -> Matrix | None:
    """Suspects by given and suggested label, for the classes that occur most often."""
    suspects = verdicts[~verdicts["keep"] & (verdicts["suggested_label"] >= 0)]
    if not len(suspects):
        return None
    given = suspects["given_label"].to_numpy(np.int64)
    suggested = suspects["suggested_label"].to_numpy(np.int64)
    size = max(names) + 1
    weight = np.bincount(given, minlength=size) + np.bincount(suggested, minlength=size)
    known = np.asarray(list(names), np.int64)
    most = known[np.argsort(-weight[known], kind="stable")][:MATRIX_SIDE]
    labels = np.sort(most)
    place = np.full(size, -1)
    place[labels] = np.arange(len(labels))
    row, column = place[given], place[suggested]
    inside = (row >= 0) & (column >= 0)
    counts = np.zeros((len(labels), len(labels)), np.int64)
    np.add.at(counts, (row[inside], column[inside]), 1)
    return Matrix(
        labels=labels.tolist(),
        names=[names[label] for label in labels.tolist()],
        counts=counts.tolist(),
        left_out=int((~inside).sum()),
    )
