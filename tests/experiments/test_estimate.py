"""How long trainings take, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from oddly.experiments import estimate as module
from oddly.experiments.estimate import Estimator, whole_epochs
from oddly.experiments.results import Store
from oddly.experiments.sizes import FULL, SMALL

TRUNK = FULL.trunk("cifar100", noise=0.4)
ODD = FULL.paper("cifar100", noise=0.4)


def test_epochs_after_e_are_shorter() -> None:
    assert whole_epochs(TRUNK, 0, 200) == 200
    assert whole_epochs(ODD, 74, 200) == 1 + 125 * 0.6
    assert whole_epochs(ODD, 100, 200) == pytest.approx(60)
    assert whole_epochs(FULL.config("cifar10", method="odd"), 0, 200) == 200
    found = FULL.config("cifar10", method="odd", noise=0.2)  # E is not known yet: half-way
    assert whole_epochs(found, 0, 200) == 100 + 100 * 0.8


def test_a_method_of_several_passes_takes_so_much_longer() -> None:
    from oddly.methods import METHODS

    config = FULL.config("cifar10", method="ren", noise=0.4)
    assert METHODS["ren"].passes > 1
    assert whole_epochs(config, 0, 200) == pytest.approx(200 * METHODS["ren"].passes)


def test_guessed_for_a_gpu(monkeypatch: pytest.MonkeyPatch, nothing_stored: Store) -> None:
    monkeypatch.setattr(module, "choose_device", lambda name: torch.device("cuda"))
    plain = Estimator(nothing_stored)
    assert plain.seconds(TRUNK, 50_000, 0, 200) == pytest.approx(15 + 200 * 50_000 / 11_000)
    compiled = Estimator(nothing_stored, {"compile": True})
    seconds = compiled.seconds(ODD, 50_000, 74, 200)
    assert seconds == pytest.approx(15 + 30 + 76 * 50_000 / 11_000)
    assert plain.seconds(TRUNK, 50_000, 200, 200) == 0
    slow = FULL.trunk("cifar100", noise=0.4, precision="fp32")
    assert plain.speed(slow) == pytest.approx(11_000 / 2.5)


def test_measured_speeds_win(tmp_path: Path) -> None:
    from oddly.experiments.base import Job
    from oddly.experiments.runner import Runner
    from oddly.experiments.sizes import Size

    tiny = Size("tiny", {**SMALL.options, "epochs": 1, "device": "cpu"}, prune_after=1)
    store = Store(tmp_path / "results")
    config = tiny.config("synthetic", method="erm")
    estimator = Estimator(store, {"device": "cpu"})
    assert estimator.speed(config) == 3_000
    Runner(store, tiny, tmp_path / "runs", tell=lambda text: None).train(Job(config))
    result = store.find(config)
    assert result is not None and estimator.speed(config) == result.images_per_second
    assert estimator.speed(tiny.config("synthetic", model="wrn-10-1")) == module.GUESS
