"""Every script makes rows that hold what the docs' tests read, on data that is small but real."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidence import (
    contrast,
    few_examples,
    held_out,
    noise_rate_interval,
    second_look,
    sentinels_features,
)
from evidence.again import RESULTS
from evidence.engine_runs import judge_head
from evidence.fashion_runs import FashionMnist, judge_linear, judge_scratch
from evidence.percentile import make_row, recorded
from evidence.planting import measure_finding, measure_harm
from evidence.recorded_cases import Case, draw_tail
from evidence.small_trainings import HEAD, Trainer
from oddly.core.sentinels import planting
from oddly.core.sentinels.planting import FEWEST, how_many
from oddly.data import DataOptions
from tests.evidence.made import blobs, write_official


def stored_row(file: str, rows: str, **name: Any) -> dict[str, Any]:
    document = json.loads((RESULTS / file).read_text())
    return next(row for row in document[rows] if name.items() <= row.items())


def names(row: Any) -> Any:
    """The keys of a row, all the way down."""
    return {key: names(row[key]) for key in sorted(row)} if isinstance(row, dict) else None


def test_few_examples_are_as_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["few_examples", "--only", "wrong_label, 3, 50, 0.2", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", words)
    few_examples.run()
    (row,) = json.loads((tmp_path / "few_examples_digits.json").read_text())["rows"]
    name = {key: row[key] for key in ("counterfactual", "classes", "examples", "noise")}
    stored = stored_row("few_examples_digits.json", "rows", **name)
    assert names(row) == names(stored)
    assert row["f1"] == pytest.approx(stored["f1"], abs=0.05)  # to the digit on like machines
    assert "wrong_label, 3, 50, 0.2: " in capsys.readouterr().out


@pytest.mark.slow
def test_held_out(tmp_path: Path) -> None:
    pytest.importorskip("cleanlab")
    write_official(tmp_path, 300)
    images = held_out.SETS["fashion"]
    row = held_out.make_row("uniform20", 0, images, tmp_path, tmp_path / "out")
    stored = stored_row("held_out_fashion.json", "runs", labels="uniform20", seed=0)
    assert names(row) == names({k: v for k, v in stored.items() if k not in ("labels", "seed")})
    assert row["wrong"] == pytest.approx(0.18, abs=0.1)
    low, rate, high = row["estimated_noise"]
    assert low <= rate <= high
    # the head of `oddly clean`, in the engine: the same verdict but for later looks
    clothes = FashionMnist(tmp_path, tmp_path / "out")
    made = make_row(partial(judge_linear, clothes, "uniform20", 0, 0))
    assert made["error_rate"] == row["wrong"]
    assert made["now"]["f1"] == pytest.approx(row["oddly"]["f1"], abs=0.15)


def test_the_interval() -> None:
    row = noise_rate_interval.measure(lambda: blobs(1_000), 2, 120)
    stored = stored_row("noise_rate_interval_features.json", "cases", classes=2, examples=300)
    assert row["trainings"] == stored["trainings"] == 24
    assert row["held"] >= 18 and 0 < row["mean_width"] < 0.5


@pytest.mark.parametrize(
    ("kind", "least"), [("uniform 20", 0.9), ("asymmetric 20", 0.75), ("aggregate", 0.65)]
)
def test_recorded_heads(kind: str, least: float) -> None:
    case = Case("blobs", kind, "small")
    loads = {"small": lambda: blobs(1_500)}
    row = sentinels_features.make_row(case, True, loads)
    stored = stored_row("sentinels_features_25_epochs.json", "cases", case="CIFAR-10N aggregate")
    assert names(row) == names({k: v for k, v in stored.items() if k != "case"})
    assert row["automatic"]["f1"] > least
    assert [one["epoch"] for one in row["forced"]] == [6, 10, 15]
    changed = make_row(recorded(case, loads))
    assert changed["before"]["f1"] > least and changed["examples"] == 1_500 - how_many(1_500)


def test_a_long_tail() -> None:
    given = np.arange(5_000) % 10
    stay = draw_tail(given)
    sizes = np.bincount(given[stay])
    assert sizes[0] == 500 and sizes[-1] == 10 and (np.diff(sizes) < 0).all()


def test_later_looks() -> None:
    loads = {"small": lambda: blobs(1_500)}
    row = second_look.make_row(Case("blobs", "uniform 20", "small"), 0, loads)
    stored = stored_row("second_look_features.json", "cases", case="CIFAR-10N aggregate")
    assert names(row) == names({k: v for k, v in stored.items() if k != "case"})
    assert row["weight_0.1"]["removed"] <= row["none"]["removed"]
    assert row["none"]["f1"] > 0.8


def test_the_rows_of_the_percentile(tmp_path: Path) -> None:
    write_official(tmp_path, 200)
    stored = stored_row("percentile_recordings.json", "runs", percentile=12.0)
    wanted = names({k: v for k, v in stored.items() if k != "case"})
    clothes = FashionMnist(tmp_path, tmp_path)
    scratch = make_row(partial(judge_scratch, clothes, "uniform 20", 0, 2))
    assert names(scratch) == wanted and scratch["examples"] == 200
    head = make_row(partial(judge_head, lambda: blobs(600), "CIFAR-10N aggregate and uniform 10 %"))
    assert names(head) == wanted and head["error_rate"] == pytest.approx(0.18, abs=0.05)
    assert head["now"]["f1"] > 0.8


def test_contrast() -> None:
    """The names of the stored rows say what to train; two short trainings, one of them plain."""
    named = [name["training"] for name, _ in contrast.cells(None)]
    assert len(named) == 44 and "digits, instance noise 40 %, ResNet-8, 12 epochs" in named
    instance = contrast.read_name("digits, instance noise 40 %, ResNet-8, 12 epochs")
    assert instance is not None
    assert (instance["noise"], instance["noise_kind"], instance["batch_size"]) == (
        0.4,
        "instance",
        64,
    )
    assert contrast.read_name("digits, uniform 25 %, one hidden layer, 4 epochs") is None
    training = "digits, uniform 20 %, 2 epochs"
    stored = stored_row("contrast_runs.json", "runs", training=training)
    told = {key: stored[key] for key in ("settings", "held_out", "in_the_table")}
    row = contrast.make_row(training, told, None)
    assert names(row | {"training": training}) == names(stored)
    assert row["doubted"] and row["wrong"] == stored["wrong"]
    assert row["contrast"] == pytest.approx(stored["contrast"], abs=0.5)
    assert row["removed"] < stored["removed"]  # doubted verdicts remove less now


def test_planting() -> None:
    trainer = Trainer(lambda: blobs(8_400), DataOptions())
    plain = measure_harm(trainer, HEAD, 600, 0, 0)
    planted = measure_harm(trainer, HEAD, 600, 60, 0)
    assert plain["test_accuracy"] > 90 and planted["test_accuracy"] > 80
    row = measure_finding(trainer, HEAD, 600, "uniform 20 %", 30, 0)
    stored = stored_row("planting.json", "finding", labels="uniform 20 %", network=HEAD)
    own = ("data", "labels", "examples", "network", "planted", "seed")
    assert names(row) == names({k: v for k, v in stored.items() if k not in own})
    assert row["f1"] > 0.8
    assert planting.FEWEST == FEWEST == 300  # as before
