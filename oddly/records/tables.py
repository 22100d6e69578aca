"""The verdicts as a table, and their quality if the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

# Reasons that override the score: the first keeps an example, the second removes it.
DECIDED = "decided by a person"
SAME_PICTURE = "same picture, another label"


@dataclass(frozen=True)
class VerdictTable:
    """What a run says about each of N training examples; an example's index is its position."""

    ids: Sequence[str]
    given_labels: NDArray[Any]
    losses: NDArray[Any]
    """NaN where an example was never seen."""
    scores: NDArray[Any]
    """Larger = more suspicious."""
    counterfactual_percentiles: NDArray[Any] | None
    """0-100: how much of the counterfactual lies below the example's score."""
    threshold: float | None
    keep: NDArray[Any]
    suggested_labels: NDArray[Any]
    """-1 if there is none."""
    suggested_confidences: NDArray[Any]
    class_names: Sequence[str]
    reasons: Sequence[str | None] | None = None
    """What decided instead of the score, if anything; None: no such column."""

    def to_arrow(self) -> pa.Table:
        """The columns of verdicts.parquet, in their order."""
        n = len(self.ids)
        columns = {
            "index": pa.array(np.arange(n, dtype=np.int64)),
            "id": text_column(self.ids),
            "given_label": label_column(self.given_labels),
            "given_name": name_column(self.given_labels, self.class_names),
            "loss": float_column(self.losses, n),
            "score": float_column(self.scores, n),
            "counterfactual_percentile": float_column(self.counterfactual_percentiles, n),
            "threshold": float_column(self.threshold, n),
            "keep": pa.array(np.asarray(self.keep, dtype=np.bool_)),
            "suggested_label": label_column(self.suggested_labels),
            "suggested_name": name_column(self.suggested_labels, self.class_names),
            "suggested_confidence": float_column(self.suggested_confidences, n),
        }
        if self.reasons is not None:
            columns["reason"] = pa.array(self.reasons, pa.string()).dictionary_encode()
        return pa.table(columns)


def has_reason(verdicts: pd.DataFrame, reason: str) -> NDArray[np.bool_]:
    """bool (N,): examples that were decided for this reason, whatever their score."""
    if "reason" not in verdicts:
        return np.zeros(len(verdicts), np.bool_)
    return (verdicts["reason"] == reason).to_numpy(np.bool_)


def score_verdict(
    keep: NDArray[Any], scores: NDArray[Any], mislabelled: NDArray[Any]
) -> dict[str, float | None]:
    """Precision, recall and F1 of "removed = mislabelled", average precision of the scores.

    None where undefined: precision when nothing is removed, recall and average precision when
    nothing is mislabelled, F1 = 2·hits / (removed + mislabelled) only when both are empty.
    """
    from sklearn.metrics import average_precision_score

    removed, mislabelled = ~np.asarray(keep, np.bool_), np.asarray(mislabelled, np.bool_)
    n_hits, n_removed, n_wrong = (
        int(mask.sum()) for mask in (removed & mislabelled, removed, mislabelled)
    )
    # an example without a score (never seen) is the least suspicious of all
    ranks = np.nan_to_num(np.asarray(scores, np.float64), nan=np.finfo(np.float64).min)
    precision_at_ranks = float(average_precision_score(mislabelled, ranks)) if n_wrong else None
    return {
        "precision": n_hits / n_removed if n_removed else None,
        "recall": n_hits / n_wrong if n_wrong else None,
        "f1": 2 * n_hits / (n_removed + n_wrong) if n_removed + n_wrong else None,
        "average_precision": precision_at_ranks,
    }


def text_column(values: Sequence[str]) -> pa.Array:
    try:
        return pa.array(list(values), pa.string())
    except UnicodeEncodeError:  # file names that are not UTF-8 contain lone surrogates
        safe = [str(value).encode("utf-8", "backslashreplace").decode() for value in values]
        return pa.array(safe, pa.string())


def label_column(labels: ArrayLike) -> pa.Array:
    return pa.array(np.asarray(labels, dtype=np.int32))


def name_column(labels: ArrayLike, class_names: Sequence[str]) -> pa.Array:
    """Class names, dictionary-encoded; null for a label outside the classes."""
    labels = np.asarray(labels, dtype=np.int64)
    # two classes may have the same name, but a dictionary must not contain it twice
    distinct = {name: code for code, name in enumerate(dict.fromkeys(class_names))}
    codes = np.asarray([distinct[name] for name in class_names] + [-1], dtype=np.int32)
    outside = (labels < 0) | (labels >= len(class_names))
    encoded = codes[np.where(outside, -1, labels)]
    return pa.DictionaryArray.from_arrays(
        pa.array(encoded, pa.int32(), mask=outside), text_column(list(distinct))
    )


def float_column(values: ArrayLike | None, length: int) -> pa.Array:
    """float32, NaN as null; a single number, or None, is repeated for every example."""
    if values is None or np.ndim(values) == 0:
        values = np.full(length, np.nan if values is None else values)
    floats = np.asarray(values, dtype=np.float32)
    return pa.array(floats, mask=np.isnan(floats))
