"""The rivals' cuts as their authors describe them: arrays in, a verdict out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddly.errors import InputError

Floats = NDArray[np.floating[Any]]
AUM_PERCENTILE = 99.0


@dataclass(frozen=True)
class Finding:
    """What a method says of N examples."""

    keep: NDArray[np.bool_]
    scores: Floats
    """Its own ranking; larger = more suspicious."""
    details: dict[str, Any] = field(default_factory=dict)


def gmm_split(losses: Floats, seed: int = 0) -> Finding:
    """DivideMix's split (Li, Socher, Hoi 2020): two Gaussians on the losses of a warm-up.

    Losses are brought to 0..1; an example is clean when the component of the smaller mean has
    more than half of its posterior. The authors' settings of the fit (10 iterations, tolerance
    0.01, covariance + 5e-4). The ranking is the posterior, ties (many are exactly 0 or 1)
    broken by the loss.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    values = np.asarray(losses, np.float64)
    spread = float(np.ptp(values))
    scaled = (values - values.min()) / (spread or 1.0)
    mixture = GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ten iterations are theirs to choose
        mixture.fit(scaled[:, None])
    means = mixture.means_.ravel()
    clean = mixture.predict_proba(scaled[:, None])[:, means.argmin()]
    # The posterior of a narrow component is not monotone in the loss: rank by it first.
    order = np.lexsort((scaled, 1 - clean))
    scores = np.empty(len(values))
    scores[order] = np.arange(len(values))
    details = {"means": np.sort(means).tolist(), "weights": mixture.weights_.tolist()}
    return Finding(clean > 0.5, scores, details)


def aum_verdict(margins: Sequence[Floats], planted: Sequence[NDArray[np.bool_]]) -> Finding:
    """AUM (Pleiss et al. 2020): below the 99th percentile of the threshold examples' margins.

    One array of averaged margins and one mask of threshold examples (in the extra class) per run.
    A run judges the examples that were not planted in it; an example goes when every run that
    judged it says so. The ranking is the mean of the margins over those runs.
    """
    total, judged = np.zeros(len(margins[0])), np.zeros(len(margins[0]), np.int64)
    keep = np.zeros(len(margins[0]), np.bool_)
    cuts = []
    for margin, mask in zip(margins, planted, strict=True):
        cut = float(np.percentile(margin[mask], AUM_PERCENTILE))
        cuts.append(cut)
        keep |= ~mask & ~(margin < cut)
        total += np.where(mask, 0.0, margin)
        judged += ~mask
    if not judged.all():
        raise InputError("aum: some examples were threshold examples in every run")
    return Finding(keep, -total / judged, {"thresholds": cuts})


def cleanlab_verdict(given: NDArray[np.integer[Any]], probabilities: Floats) -> Finding:
    """cleanlab's defaults: `find_label_issues` (prune_by_noise_rate), ranked by self-confidence."""
    try:
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores
    except ModuleNotFoundError:
        raise InputError(
            'cleanlab\'s verdict needs its package: pip install "oddly[bench]"'
        ) from None
    issues = find_label_issues(given, probabilities, n_jobs=1)
    quality = get_label_quality_scores(given, probabilities)
    return Finding(~np.asarray(issues, np.bool_), 1 - np.asarray(quality, np.float64))


def predicted_verdict(given: NDArray[np.integer[Any]], probabilities: Floats) -> Finding:
    """`predicted ≠ given`: another class is more likely; ranked by how much more."""
    rows = np.arange(len(given))
    own = probabilities[rows, given]
    others = probabilities.copy()
    others[rows, given] = -np.inf
    scores = others.max(1) - own
    return Finding(scores <= 0, scores)
