from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oddly.records import Run, RunWriter
from oddly.report.data import (
    RunPage,
    count_classes,
    find_suspects,
    format_seconds,
)
from tests.report.tables import make_verdicts


def test_suspects_come_by_score() -> None:
    verdicts = make_verdicts([1.0, np.nan, 3.0, 3.0], suggested_name=[None, "a", "b", "c"])
    suspects = find_suspects(verdicts, None)
    assert [s.id for s in suspects] == ["e2", "e3", "e0"]
    assert suspects[-1].suggested is None
    assert suspects[0].percentile is None
    negative = make_verdicts([5.0, 1.0, 2.0], score=[-3.0, -0.5, -2.0])
    assert [(s.id, s.score, s.loss) for s in find_suspects(negative, None)] == [
        ("e1", -0.5, 1.0),
        ("e2", -2.0, 2.0),
        ("e0", -3.0, 5.0),
    ]


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
    assert page.histogram.counterfactual.sum() == pytest.approx(page.histogram.removed.sum())
    assert (page.unit, page.units, page.source, page.draws) == ("loss", "losses", "weights", 50_000)
    assert page.scores_are_losses
    assert "Estimated noise" not in facts


def test_page_of_a_run_with_sentinels(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run(source="sentinels")
    page = RunPage.from_run(run)
    (noise,) = (fact for fact in page.facts if fact.name == "Estimated noise")
    assert noise.value == "38.7 %"
    assert noise.note == "labels that look random; 36.0 to 41.2\N{NO-BREAK SPACE}%"
    assert (page.unit, page.units, page.source, page.draws) == ("score", "scores", "sentinels", 300)
    assert not page.scores_are_losses
    assert page.suspects[0].score == pytest.approx(run.verdicts["score"].max())
    (threshold,) = (fact.value for fact in page.settings if fact.name == "Threshold")
    assert threshold == f"−{-run.summary['threshold']:.4g}"


def test_estimated_noise_without_an_interval(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, {}, {})
    writer.finish({"estimated_noise": {"rate": 0.05, "low": None, "high": None}})
    (noise,) = RunPage.from_run(Run(tmp_path)).facts
    assert (noise.value, noise.note) == ("5.0 %", "labels that look random")


def test_settings_a_method_did_not_use_are_not_shown(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, {"method": "erm", "prune_after": 9}, {})
    writer.append_metrics({"epoch": 1, "test_accuracy": None, "lr": 0.1})
    writer.finish({"method": "erm", "data": "digits", "prune_after": None, "threshold": None})
    page = RunPage.from_run(Run(tmp_path))
    assert page.prune_after is None
    assert page.settings == []
    assert [curve.name for curve in page.curves] == ["Learning rate"]
