"""Each rival's cut on numbers small enough to follow."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import numpy as np
import pytest

from oddly.benchmarks.detection.rivals import (
    aum_verdict,
    cleanlab_verdict,
    gmm_split,
    predicted_verdict,
)
from oddly.errors import InputError


def test_gmm_finds_two_heaps() -> None:
    random = np.random.default_rng(0)
    losses = np.concatenate([random.normal(0.3, 0.1, 700), random.normal(3.0, 0.4, 300)])
    found = gmm_split(losses)
    assert np.array_equal(found.keep, np.arange(1000) < 700)
    assert found.details["means"][0] < 0.2 < 0.6 < found.details["means"][1]
    # Brought to 0..1 first, so neither the unit nor the origin matters.
    assert np.array_equal(gmm_split(7 * losses - 2).keep, found.keep)


def test_gmm_ranks_by_the_posterior_then_by_the_loss() -> None:
    random = np.random.default_rng(1)
    losses = np.concatenate([random.normal(0.5, 0.05, 500), random.normal(4.0, 0.1, 500)])
    scores = gmm_split(losses).scores
    assert scores[:500].max() < scores[500:].min()
    suspicious = np.arange(500, 1000)
    assert np.array_equal(suspicious[scores[500:].argsort()], suspicious[losses[500:].argsort()])


def test_gmm_on_equal_losses_says_something() -> None:
    assert gmm_split(np.ones(20)).keep.shape == (20,)


def test_aum_by_hand() -> None:
    """Two runs of six examples; examples 4 and 5 are planted in turn.

    The 99th percentile of a single planted margin is that margin: 0 in the first run, -1 in the
    second.
    """
    first = np.array([2.0, -2.0, -0.5, 0.0, 0.0, 3.0])
    second = np.array([1.0, -3.0, -0.5, -2.0, 5.0, -1.0])
    planted = [np.arange(6) == 4, np.arange(6) == 5]
    found = aum_verdict([first, second], planted)
    assert found.details == {"thresholds": [0.0, -1.0]}
    # 1: below both cuts. 2: below the first only. 3: at the first, not below it. 4, 5: judged
    # once, and above.
    assert found.keep.tolist() == [True, False, True, True, True, True]
    assert found.scores.tolist() == [-1.5, 2.5, 0.5, 1.0, -5.0, -3.0]


def test_aum_takes_the_99th_percentile() -> None:
    margins = np.concatenate([np.arange(101.0), [98.5, 99.5]])  # 0…100 planted: percentile 99
    planted = np.arange(103) < 101
    other = np.full(103, -1000.0)
    other[:101] = 7.0  # judged, above the cut
    found = aum_verdict([margins, other], [planted, np.arange(103) >= 101])
    assert found.details["thresholds"][0] == 99.0
    assert found.keep[101:].tolist() == [False, True]


def test_aum_needs_disjoint_runs() -> None:
    mask = np.arange(3) == 0
    with pytest.raises(InputError, match="in every run"):
        aum_verdict([np.zeros(3)] * 2, [mask, mask])


PROBABILITIES = np.array([[0.9, 0.1]] * 6 + [[0.1, 0.9]] * 6 + [[0.02, 0.98], [0.45, 0.55]])
GIVEN = np.array([0] * 6 + [1] * 6 + [0, 0])


def test_cleanlab_removes_the_plain_mistake() -> None:
    found = cleanlab_verdict(GIVEN, PROBABILITIES)
    assert found.keep[:12].all() and not found.keep[12]
    assert found.scores == pytest.approx(1 - PROBABILITIES[np.arange(14), GIVEN])
    assert found.scores.argmax() == 12


def test_without_cleanlab_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("cleanlab"):
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    for name in [name for name in sys.modules if name.startswith("cleanlab")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InputError, match=r"pip install \"oddly\[bench\]\""):
        cleanlab_verdict(GIVEN, PROBABILITIES)


def test_predicted_is_not_given() -> None:
    found = predicted_verdict(GIVEN, PROBABILITIES)
    assert np.flatnonzero(~found.keep).tolist() == [12, 13]
    assert found.scores[[0, 12, 13]] == pytest.approx([-0.8, 0.96, 0.1])


def test_a_tie_is_kept() -> None:
    assert predicted_verdict(np.array([1]), np.array([[0.5, 0.5]])).keep.all()
