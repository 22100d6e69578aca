from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oddly.report.histogram import (
    ScoreHistogram,
    WhatIf,
    bin_scores,
    find_percentiles,
    make_edges,
    move_threshold,
    name_scores,
    rebin,
)
from tests.report.tables import make_verdicts

SENTINELS = {"source": "sentinels"}
WEIGHTS = {"source": "weights"}


def check(histogram: ScoreHistogram | None, threshold: float | None) -> ScoreHistogram:
    """What holds for every histogram."""
    assert histogram is not None
    assert (np.diff(histogram.edges) > 0).all()
    assert 20 < len(histogram.edges) < 90
    assert histogram.threshold == threshold
    if threshold is not None:
        assert threshold in histogram.edges.tolist()  # exactly
    return histogram


def test_bins_hold_every_seen_example_and_the_threshold_is_an_edge() -> None:
    losses = [0.1, 0.2, 1.0, 1.2, 3.0, 500.0, np.nan]
    keep = [True, True, True, False, False, False, True]
    histogram = check(bin_scores(make_verdicts(losses, keep=keep, threshold=[1.1] * 7), None), 1.1)
    assert (histogram.kept.sum(), histogram.removed.sum()) == (3, 3)
    assert (histogram.has_less, histogram.has_more) == (False, True)
    assert histogram.removed[-1] == 1
    assert histogram.edges[-1] < 20


@pytest.mark.parametrize("threshold", [-1.7, 0.0, 1.7])
def test_kept_and_removed_share_no_bin(threshold: float) -> None:
    scores = np.linspace(-4, 4, 801)
    keep = scores < threshold
    verdicts = make_verdicts(list(scores), keep=keep, threshold=[threshold] * 801)
    histogram = check(bin_scores(verdicts, SENTINELS), threshold)
    assert not (histogram.kept.astype(bool) & histogram.removed.astype(bool)).any()
    assert (histogram.kept.sum(), histogram.removed.sum()) == (keep.sum(), (~keep).sum())


def test_bins_of_scores_cover_the_bulk_and_say_what_lies_beyond() -> None:
    # 1,000 scores: percentiles 0.5 and 99.5 leave five at either end outside
    scores = np.concatenate([[-90.0] * 4, np.linspace(-10, 2, 992), [70.0] * 4])
    histogram = check(
        bin_scores(make_verdicts(list(scores), threshold=[-3.0] * 1000), SENTINELS), -3.0
    )
    assert -11 < histogram.edges[0] < -9.5
    assert 1.5 < histogram.edges[-1] < 3
    assert histogram.has_less and histogram.has_more
    assert histogram.kept[0] >= 4 and histogram.kept[-1] >= 4
    assert histogram.kept.sum() == 1000


def test_scores_of_which_all_are_negative() -> None:
    scores = list(np.linspace(-9, -5, 400))
    histogram = check(bin_scores(make_verdicts(scores, threshold=[-6.0] * 400), SENTINELS), -6.0)
    assert histogram.edges[-1] < -4.5
    assert histogram.unit == "score"


@pytest.mark.parametrize("threshold", [-20.0, 9.0])
def test_a_threshold_far_from_all_scores_is_seen(threshold: float) -> None:
    scores = list(np.linspace(-2, 2, 400))
    verdicts = make_verdicts(scores, threshold=[threshold] * 400)
    histogram = check(bin_scores(verdicts, SENTINELS), threshold)
    assert histogram.edges[0] < threshold < histogram.edges[-1]


@pytest.mark.parametrize("counterfactual", [None, WEIGHTS])
def test_losses_begin_at_zero(counterfactual: dict[str, str] | None) -> None:
    losses = list(np.linspace(0.5, 4, 400))
    for threshold in (1.3, 0.01):  # the second lies within the first bin
        verdicts = make_verdicts(losses, threshold=[threshold] * 400)
        histogram = check(bin_scores(verdicts, counterfactual), threshold)
        assert histogram.edges[0] == pytest.approx(0, abs=1e-12)
        assert histogram.unit == "loss"


def test_losses_that_a_later_look_took_below_zero() -> None:
    verdicts = make_verdicts([-2.0, 0.1, 0.3, 4.0], threshold=[1.0] * 4)
    histogram = check(bin_scores(verdicts, WEIGHTS), 1.0)
    assert histogram.edges[0] < 0
    assert histogram.kept.sum() + histogram.removed.sum() == 4


def test_scores_not_losses_are_counted() -> None:
    verdicts = make_verdicts([9.0, 9.0, 9.0], score=[-1.0, 0.0, 1.0])
    histogram = check(bin_scores(verdicts, SENTINELS), None)
    assert histogram.edges[-1] < 1.1
    assert histogram.kept.sum() == 3


def test_the_counterfactual_is_in_the_picture() -> None:
    percentiles = {"1": -7.0, "99": 8.0}
    verdicts = make_verdicts([-1.0, 0.0, 1.0] * 50, threshold=[0.5] * 150)
    histogram = check(bin_scores(verdicts, SENTINELS | {"percentiles": percentiles}), 0.5)
    assert histogram.edges[0] <= -7 + 0.4 and histogram.edges[-1] >= 8


def test_scores_of_nobody_make_no_histogram() -> None:
    assert bin_scores(make_verdicts([np.nan, np.nan]), None) is None


@pytest.mark.parametrize("value", [0.0, -3.0, 1e5])
def test_scores_that_are_all_the_same_make_one(value: float) -> None:
    histogram = check(bin_scores(make_verdicts([value, value]), SENTINELS), None)
    assert histogram.kept[0] == histogram.kept.sum() == 2
    check(bin_scores(make_verdicts([value] * 2, threshold=[value] * 2), SENTINELS), value)


def test_edges_worked_by_hand() -> None:
    # 80 / 40 = 2 wide; the threshold is 15.5 of them up, so 16 of 31 / 16; 49 / that = 25.3 above
    edges = make_edges(-40, 40, -9, from_zero=False)
    assert len(edges) == 16 + 26 + 1
    assert edges[:2].tolist() == pytest.approx([-40, -40 + 31 / 16])


def test_rebin_worked_by_hand() -> None:
    # 10 in [0, 2], 30 in [2, 4]; over [0, 1], [1, 3], [3, 4]: 5, 5 + 15, 15 -> scaled by 1/4
    histogram = {"edges": [0, 2, 4], "counts": [10, 30]}
    found = rebin(histogram, np.asarray([0.0, 1.0, 3.0, 4.0]), area=10)
    assert found is not None
    assert found.tolist() == pytest.approx([1.25, 5.0, 3.75])
    assert rebin({"edges": [0, 1], "counts": [0]}, np.asarray([0.0, 1.0]), 10) is None


def test_rebin_puts_what_lies_beyond_into_the_outer_bins() -> None:
    # 10 in [-4, -2], 30 in [-2, 0]; below -1: 25, above: 15
    histogram = {"edges": [-4, -2, 0], "counts": [10, 30]}
    found = rebin(histogram, np.asarray([-2.0, -1.0, -0.5]), area=40)
    assert found is not None
    assert found.tolist() == pytest.approx([25, 15])


def test_only_sentinels_make_scores_that_are_no_losses() -> None:
    assert name_scores(SENTINELS) == ("score", "scores")
    assert name_scores(WEIGHTS) == name_scores(None) == ("loss", "losses")


def test_scores_of_other_methods_are_not_called_losses() -> None:
    """Without a counterfactual, as for `ren`: they may be negative, and have a threshold."""
    scores = [-0.9, -0.2, 0.3, 0.8]
    verdicts = pd.DataFrame(
        {"score": scores, "loss": [0.1, 0.2, 0.3, 0.4], "keep": [True, True, True, False]}
    ).assign(threshold=0.5)
    histogram = bin_scores(verdicts, None)
    assert histogram is not None and histogram.unit == "score" and histogram.threshold == 0.5
    assert int(histogram.kept.sum()) == 3 and int(histogram.removed.sum()) == 1
    losses = verdicts.assign(score=verdicts["loss"], threshold=float("nan"))
    assert bin_scores(losses, None).unit == "loss"  # type: ignore[union-attr]


def move(verdicts: pd.DataFrame, wrong: list[bool] | None = None) -> WhatIf:
    truth = None if wrong is None else pd.DataFrame({"mislabelled": wrong})
    histogram = bin_scores(verdicts, SENTINELS)
    assert histogram
    whatif = move_threshold(verdicts, truth, SENTINELS, histogram)
    assert whatif
    return whatif


def test_other_thresholds_agree_with_a_slow_count() -> None:
    rng = np.random.default_rng(3)
    scores, wrong = rng.normal(size=400), rng.random(400) < 0.3
    scores[7] = np.nan
    keep = ~(scores >= 0.4)
    verdicts = make_verdicts(list(scores), keep=keep, threshold=[0.4] * 400)
    whatif = move(verdicts, list(wrong))
    assert whatif.thresholds[whatif.start] == pytest.approx(0.4)
    assert whatif.hits is not None and whatif.mislabelled == wrong.sum() and whatif.total == 400
    assert (np.diff(whatif.thresholds) > 0).all() and len(whatif.thresholds) > 300
    for place, threshold in enumerate(whatif.thresholds):
        removed = [s >= threshold - 1e-12 for s in scores]
        assert whatif.suspects[place] == sum(removed)
        assert whatif.hits[place] == sum(r and w for r, w in zip(removed, wrong, strict=True))


def test_the_runs_own_threshold_removes_what_the_run_removed() -> None:
    # a score that rounding put on the wrong side, and a class of two that was spared
    verdicts = make_verdicts(
        [1.0, 2.0, 3.0, 9.0, 9.0],
        threshold=[2.0] * 5,
        keep=[True, True, False, True, True],
        given_label=[0, 0, 0, 4, 4],
    )
    whatif = move(verdicts)
    assert whatif.suspects[whatif.start] == 1
    assert whatif.suspects.max() <= 3  # never those of the spared class
    assert whatif.hits is None and whatif.mislabelled is None and whatif.below is None


def test_what_something_else_decided_heeds_no_threshold() -> None:
    """The first is one of two copies under two labels, the last a person has decided on."""
    reasons = ["same picture, another label", None, None, None, "decided by a person"]
    verdicts = make_verdicts(
        [0.0, 1.0, 2.0, 3.0, 9.0], threshold=[2.5] * 5, keep=[False, True, True, False, True]
    ).assign(reason=reasons)
    whatif = move(verdicts, [True, False, True, False, True])
    assert whatif.hits is not None and whatif.suspects[whatif.start] == 2
    assert (whatif.suspects.min(), whatif.suspects.max()) == (1, 4)
    assert (whatif.hits.min(), whatif.hits.max()) == (1, 2)


def test_without_a_threshold_there_is_nothing_to_move() -> None:
    verdicts = make_verdicts([1.0, 2.0])
    histogram = bin_scores(verdicts, None)
    assert histogram and move_threshold(verdicts, None, None, histogram) is None


def test_percentiles_of_the_counterfactual_between_those_stored() -> None:
    stored = {"percentiles": {str(p): 2.0 * p for p in range(101)}}
    found = find_percentiles(stored, np.asarray([-5.0, 3.0, 100.0, 500.0]))
    assert found is not None and found.tolist() == [0, 1.5, 50, 100]
    assert find_percentiles({}, np.asarray([1.0])) is None
