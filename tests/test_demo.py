"""`oddly demo`: ERM and ODD side by side on noisy digits."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from oddly import cli, demo
from oddly.engine.watch import Watcher
from oddly.records import Run


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same demo with two epochs."""
    train = demo.train
    monkeypatch.setattr(
        demo, "train", lambda *given, **options: train(*given, **{**options, "epochs": 2})
    )
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")


def test_both_runs_see_the_same_noise(short: None, tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    erm, odd = demo.run_demo(tmp_path, Watcher())
    assert torch.get_num_threads() == threads
    assert (erm.path, odd.path) == (tmp_path / "erm", tmp_path / "odd")
    assert erm.verdicts["given_label"].equals(odd.verdicts["given_label"])
    assert erm.summary["noise"]["realised"] == pytest.approx(0.36, abs=0.02)


@pytest.mark.parametrize("json_wanted", [False, True])
def test_the_command(
    json_wanted: bool,
    short: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["oddly", "demo", "--out", str(tmp_path), *["--json"] * json_wanted]
    monkeypatch.setattr(sys, "argv", words)
    for _ in range(2):  # a second demo replaces the first
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code
        told = capsys.readouterr().out
    if json_wanted:
        assert json.loads(told) == {m: Run(tmp_path / m).summary for m in ("erm", "odd")}
        return
    header, erm, odd, *_, report = told.strip().splitlines()
    for column in ("test accuracy", "removed", "precision", "recall", "seconds"):
        assert column in header
    assert "denoising seconds" in header
    assert erm.startswith("erm ") and odd.startswith("odd ")
    assert report.split() == ["report", str(tmp_path / "odd/report.html")]
    assert (tmp_path / "odd/report.html").exists()


@pytest.mark.slow
def test_odd_beats_erm_by_far(tmp_path: Path) -> None:
    """The promise of the README: about 84 % against about 98 %."""
    erm, odd = demo.run_demo(tmp_path, Watcher())
    assert erm.summary["test_accuracy"] < 90
    assert odd.summary["test_accuracy"] > 97
    assert odd.summary["precision"] > 0.94 and odd.summary["recall"] > 0.94
    assert erm.summary["seconds"] + odd.summary["seconds"] < 120
