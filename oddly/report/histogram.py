"""The scores of a run's examples in bins, for its page; without any HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oddly.records import DECIDED, SAME_PICTURE, has_reason

BINS = 40
STEPS = 10  # positions of the movable threshold within a bin
FENCE = 3  # the histogram ends this many widths of its middle part to either side
MARGINS = ("score", "scores")
LOSSES = ("loss", "losses")


@dataclass(frozen=True)
class ScoreHistogram:
    """How many examples have which score; the outer bins also hold everything beyond them."""

    edges: NDArray[np.float64]
    """(bins + 1,), may be negative; the threshold, if any, is one of the edges."""
    kept: NDArray[np.int64]
    removed: NDArray[np.int64]
    counterfactual: NDArray[np.float64] | None
    """Per bin, scaled to the area of the removed bars (of all bars if nothing was removed)."""
    threshold: float | None
    unit: str
    """What a score is called: "score", or "loss" if it is one."""
    has_less: bool
    """Whether the first bin holds scores below its lower edge."""
    has_more: bool
    """Whether the last bin holds scores above its upper edge."""


@dataclass(frozen=True)
class WhatIf:
    """What the threshold would remove at each position; one number per position."""

    thresholds: NDArray[np.float64]
    """Ascending, ten per bin."""
    start: int
    """The position of the run's own threshold."""
    suspects: NDArray[np.int64]
    """Examples at or above it, without spared classes and those decided for another reason."""
    hits: NDArray[np.int64] | None
    """How many of them are mislabelled, if that is known."""
    mislabelled: int | None
    below: NDArray[np.float64] | None
    """Percentage of the random labels' scores below it."""
    total: int
    """Number of examples."""


def name_scores(
    counterfactual: dict[str, Any] | None, verdicts: pd.DataFrame | None = None
) -> tuple[str, str]:
    """What to call the scores, singular and plural: with the paper's rule they are losses.

    Without a counterfactual, they are losses only if the table says so: other methods have their
    own scores.
    """
    if counterfactual is None and verdicts is not None:
        return LOSSES if verdicts["score"].equals(verdicts["loss"]) else MARGINS
    return MARGINS if (counterfactual or {}).get("source") == "sentinels" else LOSSES


def bin_scores(
    verdicts: pd.DataFrame, counterfactual: dict[str, Any] | None
) -> ScoreHistogram | None:
    """Histogram of kept and removed scores, the counterfactual rebinned to the same bins."""
    scores = verdicts["score"].to_numpy(np.float64)
    seen = np.isfinite(scores)
    scores, keep = scores[seen], verdicts["keep"].to_numpy(np.bool_)[seen]
    if not len(scores):
        return None
    unit, _ = name_scores(counterfactual, verdicts)
    threshold = find_threshold(verdicts)
    span = find_span(scores, threshold, (counterfactual or {}).get("percentiles") or {})
    # Later rounds may have lowered a loss below 0.
    edges = make_edges(*span, threshold, from_zero=unit == "loss" and scores.min() >= 0)
    inside = np.clip(scores, edges[0], edges[-1])
    kept, removed = (np.histogram(inside[mask], edges)[0] for mask in (keep, ~keep))
    area = int(removed.sum()) or int(kept.sum())
    histogram = (counterfactual or {}).get("histogram")
    return ScoreHistogram(
        edges=edges,
        kept=kept,
        removed=removed,
        counterfactual=rebin(histogram, edges, area) if histogram else None,
        threshold=threshold,
        unit=unit,
        has_less=bool(scores.min() < edges[0]),
        has_more=bool(scores.max() > edges[-1]),
    )


def find_threshold(verdicts: pd.DataFrame) -> float | None:
    """Examples with this score or more were removed; None if the run has no verdict."""
    first = verdicts["threshold"].iloc[0] if len(verdicts) else None
    return None if pd.isna(first) else float(first)


def move_threshold(
    verdicts: pd.DataFrame,
    truth: pd.DataFrame | None,
    counterfactual: dict[str, Any] | None,
    histogram: ScoreHistogram,
) -> WhatIf | None:
    """What other thresholds would remove; at the run's own, exactly what it did remove."""
    if histogram.threshold is None:
        return None
    edges = histogram.edges
    places = np.arange(STEPS * (len(edges) - 1) + 1)
    thresholds = np.interp(places, STEPS * np.arange(len(edges)), edges)
    start = STEPS * int(np.argmin(np.abs(edges - histogram.threshold)))
    scores = verdicts["score"].to_numpy(np.float64)
    removed = ~verdicts["keep"].to_numpy(np.bool_)
    anyway, never = (has_reason(verdicts, reason) for reason in (SAME_PICTURE, DECIDED))
    spared = find_spared(verdicts[~anyway], histogram.threshold)
    judged = np.isfinite(scores) & ~anyway & ~never & ~np.isin(labels_of(verdicts), spared)
    suspects = count_from(scores[judged], thresholds) + anyway.sum()
    suspects[start] = removed.sum()
    hits = wrong = None
    if truth is not None:
        wrong = truth["mislabelled"].to_numpy(np.bool_)
        hits = count_from(scores[judged & wrong], thresholds) + (anyway & wrong).sum()
        hits[start] = (removed & wrong).sum()
    return WhatIf(
        thresholds=thresholds,
        start=start,
        suspects=suspects,
        hits=hits,
        mislabelled=None if wrong is None else int(wrong.sum()),
        below=find_percentiles(counterfactual, thresholds),
        total=len(verdicts),
    )


def find_spared(verdicts: pd.DataFrame, threshold: float) -> NDArray[np.int64]:
    """Labels of the classes that were kept whole although they reach the threshold."""
    labels = labels_of(verdicts)
    above = verdicts["score"].to_numpy(np.float64) >= threshold
    touched = np.unique(labels[above])
    pruned = np.unique(labels[~verdicts["keep"].to_numpy(np.bool_)])
    return np.setdiff1d(touched, pruned)


def labels_of(verdicts: pd.DataFrame) -> NDArray[np.int64]:
    return verdicts["given_label"].to_numpy(np.int64)


def find_percentiles(
    counterfactual: dict[str, Any] | None, scores: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """For each score, the percentage of the counterfactual below it; None if unknown."""
    known = (counterfactual or {}).get("percentiles") or {}
    steps = [(known[str(p)], p) for p in range(101) if known.get(str(p)) is not None]
    return np.asarray(np.interp(scores, *np.transpose(steps))) if steps else None


def count_from(scores: NDArray[np.float64], thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each threshold the number of scores at or above it."""
    return np.asarray(len(scores) - np.searchsorted(np.sort(scores), thresholds), np.int64)


def find_span(
    scores: NDArray[np.float64], threshold: float | None, percentiles: dict[str, float]
) -> tuple[float, float]:
    """The range to draw: the bulk of the scores, the threshold and the counterfactual."""
    low, left, right, high = np.percentile(scores, [0.5, 25, 75, 99.5]).tolist()
    musts = [percentiles[p] for p in ("1", "99") if percentiles.get(p) is not None]
    if threshold is None:
        return min([low, *musts]), max([high, *musts])
    # With few examples, the 0.5 % cut removes none: one extreme score must not flatten the others.
    left, right = min(left, threshold, *musts), max(right, threshold, *musts)
    reach = FENCE * (right - left)
    return min(max(low, left - reach), left), max(min(high, right + reach), right)


def make_edges(
    low: float, high: float, threshold: float | None, from_zero: bool
) -> NDArray[np.float64]:
    """Edges of about 40 bins of equal width over low..high; the threshold is one of them."""
    low = min(low, 0.0) if from_zero else low
    if high - low < 1e-6 * max(abs(low), 1):  # all the same
        high = low + 1
    width = (high - low) / BINS
    if threshold is None:
        return low + width * np.arange(BINS + 1, dtype=np.float64)
    below = max(round((threshold - low) / width), 1)
    if threshold - low > width / 2:  # otherwise the first bin starts a little lower
        width = (threshold - low) / below
    above = max(int(np.ceil((high - threshold) / width - 1e-9)), 1)
    edges = threshold + width * np.arange(-below, above + 1, dtype=np.float64)
    edges[0] = max(edges[0], 0.0) if from_zero and threshold > 0 else edges[0]
    return edges


def rebin(
    histogram: dict[str, Any], edges: NDArray[np.float64], area: float
) -> NDArray[np.float64] | None:
    """Counts for other bins, assuming that old bins are evenly filled; scaled to `area` in total.

    As with the bars, the outer bins include everything beyond them.
    """
    counts = np.asarray(histogram["counts"], np.float64)
    if not counts.sum() > 0:
        return None
    below = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
    at_edges = np.interp(edges, np.asarray(histogram["edges"], np.float64), below)
    at_edges[0], at_edges[-1] = 0, 1
    return np.asarray(area * np.diff(at_edges), np.float64)
