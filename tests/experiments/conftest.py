"""What the tests of the experiments share."""

from __future__ import annotations

from pathlib import Path

import pytest

from oddly.experiments import results
from oddly.experiments.results import Store
from oddly.experiments.runner import Runner
from oddly.experiments.sizes import Size

TINY = Size(
    "tiny",
    {"model": "resnet8", "epochs": 6, "batch_size": 32, "learning_rate": 0.05, "device": "cpu"},
    prune_after=3,
)
NOISE = {"noise": 0.4}


@pytest.fixture
def nothing_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Store:
    """A store without the package's own results: plans and guesses as before the first run."""
    monkeypatch.setattr(results, "STORED", tmp_path / "none shipped")
    return Store(tmp_path / "none of mine")


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(Store(tmp_path / "results"), TINY, tmp_path / "runs", tell=lambda text: None)
