"""What every method must do, tested by being listed in METHODS."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import oddly
from oddly.data import synthetic
from oddly.data.base import LabelledData
from oddly.engine import checkpoint
from oddly.engine.watch import Watcher
from oddly.methods import METHODS, build_method, settings_of
from oddly.records import Run

EPOCHS = 4


class StopAfter(Watcher):
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def end_epoch(self, row: Mapping[str, Any]) -> None:
        if row["epoch"] == self.epoch:
            raise KeyboardInterrupt


def check_whole(run: Run, examples: int) -> None:
    assert run.is_done and len(run.verdicts) == examples
    assert all(math.isfinite(row["train_loss"]) for row in run.metrics)
    assert all(
        weight.isfinite().all() for weight in load_file(run.path / "model.safetensors").values()
    )
    assert 0 < run.verdicts["keep"].sum() <= examples


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", ["synthetic", "digits"])
def test_its_name_is_all_it_needs(data: str, method: str, tmp_path: Path) -> None:
    run = oddly.train(data, tmp_path, method=method, model="resnet8", epochs=2)
    check_whole(run, 120 if data == "synthetic" else 1437)
    assert run.summary["method"] == method


@pytest.mark.parametrize("method", METHODS)
def test_it_learns(method: str, tmp_path: Path) -> None:
    run = oddly.train("synthetic", tmp_path, method=method, epochs=8, noise=0.2)
    assert run.summary["test_accuracy"] > 90


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epoch", range(1, EPOCHS))
def test_it_resumes_bit_for_bit(
    epoch: int, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    options: dict[str, Any] = {"method": method, "epochs": EPOCHS, "noise": 0.4}
    whole = oddly.train("synthetic", tmp_path / "whole", **options)
    with pytest.raises(KeyboardInterrupt):
        oddly.train("synthetic", tmp_path / "broken", watcher=StopAfter(epoch), **options)
    resumed = oddly.train(out=tmp_path / "broken", resume=True)
    first, second = (load_file(run.path / "model.safetensors") for run in (whole, resumed))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    files = [(run.path / "verdicts.parquet").read_bytes() for run in (whole, resumed)]
    assert files[0] == files[1]
    assert whole.counterfactual == resumed.counterfactual


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("data", "batch_size"),
    [
        pytest.param(synthetic(per_class=11), 32, id="last batch of one"),
        pytest.param(synthetic(per_class=11), 30, id="last batch of three"),
        pytest.param(synthetic(per_class=5), 64, id="less than one batch"),
        pytest.param(synthetic(2), 32, id="2 classes"),
        pytest.param(synthetic(100, per_class=8, test_per_class=1), 64, id="100 classes"),
        pytest.param(synthetic(channels=1, size=4), 32, id="grey, 4 x 4"),
    ],
)
def test_it_survives_odd_shapes(
    data: LabelledData, batch_size: int, method: str, tmp_path: Path
) -> None:
    # The last epoch's threshold keeps at least something, whatever a net says after three.
    options = {"percentile": 100} if "percentile" in settings_of(method) else {}
    run = oddly.train(data, tmp_path, method=method, epochs=3, batch_size=batch_size, **options)
    check_whole(run, len(data.train))


@pytest.mark.parametrize("method", METHODS)
def test_settings_are_typed_fields(method: str) -> None:
    built, notes = build_method(method, {})
    assert not notes
    for name in settings_of(method):
        again, _ = build_method(method, {name: getattr(built, name)})
        assert getattr(again, name) == getattr(built, name)


@pytest.mark.parametrize("method", METHODS)
def test_its_class_says_what_it_is(method: str) -> None:
    assert METHODS[method].__doc__ and METHODS[method].__module__.startswith("oddly.methods.")
