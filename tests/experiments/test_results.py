"""Stored results: what is none is told in a line, whatever it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oddly.errors import InputError
from oddly.experiments.base import Cell, Job, fill
from oddly.experiments.results import Store, run_name
from oddly.experiments.sizes import FULL

CONFIG = FULL.paper("cifar100", 0, noise=0.4)
CELL = Cell("ODD", "CIFAR-100 40 %", None, (Job(CONFIG),))
Content = dict[str, Any]


@pytest.fixture
def content() -> Content:
    """One of the package's own, to spoil."""
    result = Store().find(CONFIG)
    assert result is not None
    return dict(vars(result))


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return tmp_path / f"{run_name(CONFIG)}.json"


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"5", b"{}", b"\xff\xfe", b"[" * 100_000])
def test_no_result_at_all(mine: Path, text: bytes) -> None:
    mine.write_bytes(text)
    with pytest.raises(InputError, match=f"{mine.name} is not a stored result; remove it"):
        Store(mine.parent).find(CONFIG)


@pytest.mark.parametrize("part", ["identity", "config", "summary", "curve", "snapshots", "also"])
def test_a_part_that_is_something_else(mine: Path, content: Content, part: str) -> None:
    mine.write_text(json.dumps({**content, part: 5}))
    with pytest.raises(InputError, match="is not a stored result"):
        Store(mine.parent).find(CONFIG)


def test_what_a_later_version_adds_does_no_harm(mine: Path, content: Content) -> None:
    mine.write_text(json.dumps({**content, "invented_later": 1}))
    before, after = fill([CELL], Store()), fill([CELL], Store(mine.parent))
    assert before == after and after[0].ours is not None


@pytest.mark.parametrize("accuracy", ["much", [1], {}])
def test_a_number_that_is_none(mine: Path, content: Content, accuracy: Any) -> None:
    content["summary"] = {**content["summary"], "test_accuracy": accuracy}
    mine.write_text(json.dumps(content))
    told = f"cannot read 'ODD', 'CIFAR-100 40 %' from {run_name(CONFIG)}: "
    with pytest.raises(InputError, match=told):
        fill([CELL], Store(mine.parent))


def test_another_run_under_this_name(mine: Path, content: Content) -> None:
    content["identity"] = {**content["identity"], "noise": 0.2}
    mine.write_text(json.dumps(content))
    with pytest.raises(InputError, match="contains a different run than its name says"):
        Store(mine.parent).find(CONFIG)
