"""What the tests of the experiments share."""

from __future__ import annotations

from pathlib import Path

import pytest

from oddly.experiments import results
from oddly.experiments.results import Store


@pytest.fixture
def nothing_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Store:
    """A store without the package's own results: plans and guesses as before the first run."""
    monkeypatch.setattr(results, "STORED", tmp_path / "none shipped")
    return Store(tmp_path / "none of mine")
