"""cleanlab on features: five folds of logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def judge_with_cleanlab(
    features: NDArray[np.float32], given: NDArray[np.int64], seed: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Which labels it keeps, and how suspicious each is."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    probabilities = cross_val_predict(
        make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=200)),
        features,
        given,
        cv=StratifiedKFold(5, shuffle=True, random_state=seed),
        method="predict_proba",
    )
    quality = get_label_quality_scores(given, probabilities)
    return ~find_label_issues(given, probabilities), 1 - quality
