"""How well a verdict and the ranking under it fit the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddly.records import score_verdict


def detection_figures(
    keep: NDArray[Any], scores: NDArray[Any], wrong: NDArray[Any]
) -> dict[str, float | None]:
    """At the method's own cut: precision, recall, F1; of its ranking: AP, AUROC, the best F1.

    `scores`: larger = more suspicious. None where undefined, as on clean data.
    """
    from sklearn.metrics import roc_auc_score

    keep, wrong = np.asarray(keep, np.bool_), np.asarray(wrong, np.bool_)
    ranks = np.asarray(scores, np.float64)
    # an example without a score (never seen) is the least suspicious of all
    ranks = np.nan_to_num(ranks, nan=np.finfo(np.float64).min)
    mixed = bool(wrong.any()) and not bool(wrong.all())
    best_f1, best_removed = best_cut(ranks, wrong)
    return {
        **score_verdict(keep, ranks, wrong),
        "auroc": float(roc_auc_score(wrong, ranks)) if mixed else None,
        "best_f1": best_f1,
        "best_removed_fraction": best_removed,
        "removed_fraction": float((~keep).mean()),
        "error_rate": float(wrong.mean()),
    }


def best_cut(scores: NDArray[Any], wrong: NDArray[Any]) -> tuple[float | None, float | None]:
    """The highest F1 = 2·hits / (removed + wrong) of any threshold, and the share it removes.

    Equal scores fall together: a threshold cannot part them. (None, None) when nothing is wrong.
    """
    if not wrong.any():
        return None, None
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(wrong[order])
    removed = np.arange(1, len(scores) + 1)
    ranked = scores[order]
    possible = np.append(ranked[1:] != ranked[:-1], True)
    f1 = np.where(possible, 2 * hits / (removed + hits[-1]), -1.0)
    best = int(f1.argmax())
    return float(f1[best]), float(removed[best] / len(scores))


def suggestion_figures(
    suggested: NDArray[Any], confidences: NDArray[Any], true: NDArray[Any]
) -> dict[str, float]:
    """Of labels suggested for removed examples: how many are right, and how many were said to be.

    The calibration error is the distance between the two in ten equal bins of confidence, each
    weighted by how many suggestions fall into it.
    """
    right = np.asarray(suggested == true, np.float64)
    surplus = np.asarray(confidences, np.float64) - right
    bins = np.minimum((10 * confidences).astype(np.int64), 9)
    missed = np.abs(np.bincount(bins, surplus, minlength=10))
    count = max(len(right), 1)
    return {
        "count": len(right),
        "right": float(right.sum() / count),
        "said_right": float(np.sum(confidences, dtype=np.float64) / count),
        "calibration_error": float(missed.sum() / count),
    }
