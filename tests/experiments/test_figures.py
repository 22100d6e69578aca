"""Figures of trainings that were broken off: nothing is drawn, and nothing breaks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from oddly.experiments import EXPERIMENTS
from oddly.experiments.base import Drawing
from oddly.experiments.results import Store
from oddly.experiments.sizes import FULL


@pytest.mark.parametrize("name", ["figure2", "figure3", "figure4", "learning_rate"])
def test_a_training_that_was_stopped_before_e(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its losses after epoch 10 alone are stored."""
    trunk = Store(tmp_path).find(FULL.trunk("cifar100", 0, noise=0.4))
    assert trunk is not None
    partly = replace(trunk, summary={}, snapshots={"10": trunk.snapshots["10"]})
    monkeypatch.setattr(Store, "find", lambda *_: partly)
    draw = EXPERIMENTS[name].draw
    assert draw is not None
    written = draw(Drawing(Store(tmp_path), FULL, 3, tmp_path / "out"))
    assert all(path.exists() for path in written)
    assert bool(written) == (name in ("figure3", "learning_rate"))
