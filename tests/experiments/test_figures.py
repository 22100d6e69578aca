"""Figures of trainings that were broken off: nothing is drawn, and nothing breaks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from oddly.experiments import EXPERIMENTS
from oddly.experiments.base import Drawing
from oddly.experiments.results import Store, run_name
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


def test_figure_3_asks_whether_amount_and_kind_matter() -> None:
    """Each claim of the paper has a number: the same curve beside itself is no distance apart."""
    trunk = Store().find(FULL.trunk("cifar100", 0, noise=0.4))
    assert trunk is not None
    cells = EXPERIMENTS["figure3"].cells(FULL, 1)
    joint = [cell for cell in cells if cell.joint]
    assert {cell.column for cell in joint} == {
        "CIFAR-100 20 % against 40 %",
        "CIFAR-100 uniform against asymmetric 40 %",
    }
    for cell in joint:
        assert cell.joint is not None and cell.joint([trunk, trunk]) == 0
        first, second = (job.config for job in cell.jobs)
        assert first.noise != second.noise or first.noise_kind != second.noise_kind


def test_figure_3_on_imagenet_shares_the_trunks_of_tables_3_and_6() -> None:
    figure, table = (EXPERIMENTS[name] for name in ("figure3_imagenet", "table6"))
    for size in figure.sizes.values():
        ours, shared = (
            {run_name(job.config) for cell in each.cells(size, 1) for job in cell.jobs}
            for each in (figure, table)
        )
        assert ours <= shared
        for cell in figure.cells(size, 1):
            assert all(set(job.snapshots) <= set(size.looks) for job in cell.jobs)
