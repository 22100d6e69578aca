"""The method that docs/add_a_method.md writes out is a method."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import oddly
from oddly.methods import METHODS, settings_of
from tests.pages import ROOT


def test_the_example_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/add_a_method.md").read_text(encoding="utf-8")
    file = tmp_path / "smooth.py"
    file.write_text(page.split("```python\n")[1].split("```")[0], encoding="utf-8")
    spec = importlib.util.spec_from_file_location("smooth", file)
    assert spec and spec.loader
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    monkeypatch.setitem(METHODS, "smooth", module.Smooth)
    assert list(settings_of("smooth")) == ["smoothing"]
    run = oddly.train("synthetic", tmp_path / "run", method="smooth", epochs=8, smoothing=0.2)
    assert run.summary["test_accuracy"] > 90
