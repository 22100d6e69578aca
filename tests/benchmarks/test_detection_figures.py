"""Detection figures against hand-worked numbers and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from oddly.benchmarks.detection.figures import best_cut, detection_figures, suggestion_figures


def test_by_hand() -> None:
    """Five examples; the ranking is wrong, right, wrong, right, right."""
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    wrong = np.array([True, False, True, False, False])
    keep = np.array([False, False, True, True, True])
    figures = detection_figures(keep, scores, wrong)
    assert figures == pytest.approx(
        {
            "precision": 1 / 2,
            "recall": 1 / 2,
            "f1": 1 / 2,
            "average_precision": (1 + 2 / 3) / 2,
            "auroc": 5 / 6,  # of the six pairs only (3, 4) stands the wrong way round
            "best_f1": 4 / 5,  # the first three: two hits, three removed, two wrong
            "best_removed_fraction": 3 / 5,
            "removed_fraction": 2 / 5,
            "error_rate": 2 / 5,
        }
    )


def test_suggestions_by_hand() -> None:
    """Two in the bin from .9 (one right), one in the bin from .5 (right)."""
    said = np.array([0.95, 1.0, 0.55], np.float32)
    found = suggestion_figures(np.array([1, 2, 0]), said, np.array([1, 0, 0]))
    expected = {
        "count": 3,
        "right": 2 / 3,
        "said_right": 2.5 / 3,
        "calibration_error": (0.95 + 1.0 - 1 + 1 - 0.55) / 3,
    }
    assert found == pytest.approx(expected)
    nothing = suggestion_figures(np.empty(0, int), np.empty(0, np.float32), np.empty(0, int))
    assert nothing == {"count": 0, "right": 0, "said_right": 0, "calibration_error": 0}


def test_equal_scores_fall_together() -> None:
    """No threshold parts the tie: all four or nothing, 2·1 / (4 + 1)."""
    wrong = np.array([True, False, False, False])
    assert best_cut(np.zeros(4), wrong) == (pytest.approx(2 / 5), 1.0)
    figures = detection_figures(np.ones(4, bool), np.zeros(4), wrong)
    assert figures["average_precision"] == pytest.approx(1 / 4)
    assert figures["auroc"] == pytest.approx(1 / 2)


def test_against_scikit_learn_with_many_ties() -> None:
    random = np.random.default_rng(0)
    wrong = random.random(500) < 0.3
    scores = np.round(random.normal(wrong.astype(float)), 1)
    precision, recall, _ = precision_recall_curve(wrong, scores)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    figures = detection_figures(scores < 1, scores, wrong)
    assert figures["best_f1"] == pytest.approx(f1.max())
    assert figures["average_precision"] == pytest.approx(average_precision_score(wrong, scores))
    assert figures["auroc"] == pytest.approx(roc_auc_score(wrong, scores))


def test_clean_data_has_no_ranking() -> None:
    figures = detection_figures(
        np.array([True, True, False]), np.array([1.0, 2.0, 3.0]), np.zeros(3, bool)
    )
    assert figures["removed_fraction"] == pytest.approx(1 / 3)
    assert figures["precision"] == 0 and figures["error_rate"] == 0
    for name in ("recall", "average_precision", "auroc", "best_f1"):
        assert figures[name] is None


def test_an_example_never_seen_is_the_least_suspicious() -> None:
    scores = np.array([np.nan, -5.0, 1.0])
    figures = detection_figures(scores < 0, scores, np.array([False, True, True]))
    assert figures["auroc"] == 1 and figures["best_f1"] == 1
