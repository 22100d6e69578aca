from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from oddly.records import Run, RunWriter
from oddly.report.data import (
    RunPage,
    bin_losses,
    count_classes,
    find_suspects,
    format_seconds,
    rebin,
)


def make_verdicts(losses: list[float], **columns: Any) -> pd.DataFrame:
    n = len(losses)
    values = {
        "id": [f"e{i}" for i in range(n)],
        "given_label": [0] * n,
        "given_name": ["cat"] * n,
        "loss": losses,
        "score": losses,
        "counterfactual_percentile": [np.nan] * n,
        "threshold": [np.nan] * n,
        "keep": [True] * n,
        "suggested_label": [1] * n,
        "suggested_name": ["dog"] * n,
        "suggested_confidence": [0.5] * n,
    }
    return pd.DataFrame({**values, **columns})


def test_bins_hold_every_seen_example_and_the_threshold_is_an_edge() -> None:
    losses = [0.1, 0.2, 1.0, 1.2, 3.0, 500.0, np.nan]
    keep = [True, True, True, False, False, False, True]
    verdicts = make_verdicts(losses, keep=keep, threshold=[1.1] * 7)
    histogram = bin_losses(verdicts, None)
    assert histogram is not None
    assert (histogram.kept.sum(), histogram.removed.sum()) == (3, 3)
    assert np.isclose(histogram.edges, 1.1).any()
    assert len(histogram.edges) < 60
    assert histogram.has_more
    assert histogram.removed[-1] == 1


def test_kept_and_removed_share_no_bin() -> None:
    losses = np.linspace(0, 4, 401)
    verdicts = make_verdicts(list(losses), keep=losses < 1.7, threshold=[1.7] * 401)
    histogram = bin_losses(verdicts, None)
    assert histogram is not None
    assert not (histogram.kept.astype(bool) & histogram.removed.astype(bool)).any()


def test_losses_of_nobody_make_no_histogram() -> None:
    assert bin_losses(make_verdicts([np.nan, np.nan]), None) is None


def test_losses_that_are_all_zero_make_one() -> None:
    histogram = bin_losses(make_verdicts([0.0, 0.0]), None)
    assert histogram is not None
    assert histogram.kept[0] == histogram.kept.sum() == 2


def test_rebin_worked_by_hand() -> None:
    # 10 in [0, 2], 30 in [2, 4]; over [0, 1], [1, 3], [3, 4]: 5, 5 + 15, 15 -> scaled by 1/4
    histogram = {"edges": [0, 2, 4], "counts": [10, 30]}
    found = rebin(histogram, np.asarray([0.0, 1.0, 3.0, 4.0]), area=10)
    assert found is not None
    assert found.tolist() == pytest.approx([1.25, 5.0, 3.75])
    assert rebin({"edges": [0, 1], "counts": [0]}, np.asarray([0.0, 1.0]), 10) is None


def test_suspects_come_by_score() -> None:
    verdicts = make_verdicts([1.0, np.nan, 3.0, 3.0], suggested_name=[None, "a", "b", "c"])
    suspects = find_suspects(verdicts, None)
    assert [s.id for s in suspects] == ["e2", "e3", "e0"]
    assert suspects[-1].suggested is None
    assert suspects[0].percentile is None


def test_classes_worked_by_hand() -> None:
    verdicts = make_verdicts(
        [0.0] * 5,
        given_label=[0, 0, 3, 3, 3],
        given_name=["cat", "cat", "emu", "emu", "emu"],
        keep=[True, True, False, True, True],
    )
    truth = pd.DataFrame({"mislabelled": [True, False, True, True, False]})
    emu, cat = count_classes(verdicts, truth)
    assert (emu.name, emu.examples, emu.removed, emu.mislabelled) == ("emu", 3, 1, 2)
    assert (cat.name, cat.examples, cat.removed, cat.mislabelled) == ("cat", 2, 0, 1)
    assert emu.share == pytest.approx(100 / 3)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0134, "13.4 ms"), (0, "0 ms"), (21.44, "21.4 s"), (600, "10 min"), (9000, "2.5 h")],
)
def test_seconds_read_like_a_person_would_say_them(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_page_of_a_whole_run(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run()
    page = RunPage.from_run(run)
    facts = {fact.name: fact.value for fact in page.facts}
    assert page.title == "odd on digits"
    assert facts["Test accuracy"] == "97.50 %"
    assert facts["Removed"] == f"{100 * (~run.verdicts['keep']).mean():.1f} %"
    assert facts["Precision"] == f"{100 * run.summary['precision']:.1f} %"
    assert [curve.name for curve in page.curves] == [
        "Test accuracy, %",
        "Training loss",
        "Learning rate",
    ]
    assert page.curves[0].prune_after == 15
    assert len(page.suspects) == 50
    assert page.suspects[0].loss == pytest.approx(run.verdicts["loss"].max())
    assert sum(c.removed for c in page.classes) == (~run.verdicts["keep"]).sum()
    assert page.histogram is not None
    assert page.histogram.counterfactual is not None
    removed = page.histogram.removed.sum()
    # the top bins hold 99 % of the counterfactual at least
    assert 0.98 * removed < page.histogram.counterfactual.sum() <= removed


def test_settings_a_method_did_not_use_are_not_shown(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, {"method": "erm", "prune_after": 9}, {})
    writer.append_metrics({"epoch": 1, "test_accuracy": None, "lr": 0.1})
    writer.finish({"method": "erm", "data": "digits", "prune_after": None, "threshold": None})
    page = RunPage.from_run(Run(tmp_path))
    assert page.prune_after is None
    assert page.settings == []
    assert [curve.name for curve in page.curves] == ["Learning rate"]
