"""cleanlab on features: five folds of logistic regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oddly.benchmarks.detection.rivals import Finding, cleanlab_verdict


def judge_with_cleanlab(
    features: NDArray[np.float32], given: NDArray[np.int64], seed: int
) -> Finding:
    """Which labels it keeps, and how suspicious each is."""
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
    return cleanlab_verdict(given, probabilities)
