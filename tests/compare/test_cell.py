"""Runs of a comparison share what is read, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import oddly
from oddly.compare import cell, compare
from oddly.data.base import DataOptions, LabelledData
from oddly.errors import InputError
from tests.clean.conftest import write_pictures

OPTIONS: dict[str, Any] = {"epochs": 2, "noise": 0.3, "device": "cpu", "image_size": 8}


@pytest.mark.parametrize("name", ["odd_mixup", "mine-0", "erm-x", "-1", "compare.json"])
def test_a_run_is_known_by_its_folder(name: str) -> None:
    assert cell.Cell.from_name(name) is None
    assert cell.Cell.from_name("odd_mixup-12") == cell.Cell("odd_mixup", 12)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that are read."""
    read: list[str] = []
    load = cell.load_data

    def note(source: str, options: DataOptions) -> LabelledData:
        read.append(source)
        return load(source, options)

    monkeypatch.setattr(cell, "load_data", note)
    return read


def test_images_are_read_once_for_all_runs(tmp_path: Path, reads: list[str]) -> None:
    photos = str(tmp_path / "photos")
    write_pictures(tmp_path / "photos", 20)
    compare(photos, ("erm", "odd"), tmp_path / "out", seeds=2, **OPTIONS)
    assert reads == [photos] and cell.read_once.cache_info().currsize == 0  # nothing is held
    for method in ("erm", "odd"):
        alone = oddly.train(
            photos, tmp_path / method, method=method, seed=1, hold_out=0.1, **OPTIONS
        )
        shared = oddly.Run(tmp_path / f"out/{method}-1")
        assert shared.verdicts.equals(alone.verdicts) and shared.config == alone.config
        assert shared.summary["test_accuracy"] == alone.summary["test_accuracy"]


def test_nothing_is_held_when_it_fails(tmp_path: Path, reads: list[str]) -> None:
    write_pictures(tmp_path / "photos", 20)
    (tmp_path / "out").write_text("taken")
    with pytest.raises(InputError, match="out is not empty and not a comparison"):
        compare(str(tmp_path / "photos"), ("erm",), tmp_path / "out", seeds=1, **OPTIONS)
    assert len(reads) == 1 and cell.read_once.cache_info().currsize == 0
