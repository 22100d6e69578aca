"""A run whose training is over, but which was stopped before all was written."""

from __future__ import annotations

from pathlib import Path

import pytest

import oddly
from oddly.clean import api
from oddly.errors import InputError
from tests.clean.test_api import QUICK


@pytest.mark.parametrize("lost", ["report.html", "verdicts.csv", "duplicates.csv"])
def test_a_finished_run_is_completed_but_not_trained_again(
    photos: Path, tmp_path: Path, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where somebody stops it while the report is written."""
    run = oddly.clean(photos, tmp_path / "run", **QUICK)
    content, verdicts = (run.path / lost).read_bytes(), run.verdicts
    (run.path / lost).unlink()
    monkeypatch.setattr(api, "run_config", lambda *_, **__: pytest.fail("trained again"))
    again = oddly.clean(out=run.path, resume=True)
    assert (run.path / lost).read_bytes() == content and again.verdicts.equals(verdicts)
    (run.path / lost).unlink()
    (photos / "red/red0.png").rename(photos / "blue/red0.png")
    before = {file: file.read_bytes() for file in run.path.glob("*.csv")}
    with pytest.raises(
        InputError, match="photos has changed since .*run judged it: other examples or given"
    ):
        oddly.clean(out=run.path, resume=True)
    assert {file: file.read_bytes() for file in run.path.glob("*.csv")} == before
