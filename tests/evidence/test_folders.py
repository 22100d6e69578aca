"""Folders of images under labels that are taken for right, some of them replaced."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evidence import folders
from evidence.again import RESULTS

COLOURS = {"red": (220, 20, 20), "rose": (220, 60, 60), "blue": (20, 20, 220), "sky": (40, 60, 220)}


def test_a_class_is_confused_with_the_one_that_looks_like_it() -> None:
    draw = np.random.default_rng(0)
    true = np.arange(400) % 4
    middles = np.array([[9, 0, 0, 1], [9, 1, 0, 0], [0, 0, 9, 0], [1, 0, 9, 1]], np.float32)
    features = middles[true] + draw.normal(0, 0.1, (400, 4)).astype(np.float32)
    assert folders.nearest(features, true, 4).tolist() == [1, 0, 3, 2]
    given = folders.give("alike30", true, features, 4)
    wrong = given != true
    assert len(set(true[wrong])) == 2  # half of the classes
    assert {(int(a), int(b)) for a, b in zip(true[wrong], given[wrong], strict=True)} <= {
        (0, 1), (1, 0), (2, 3), (3, 2)
    }  # fmt: skip
    assert 0.1 < wrong.mean() < 0.2
    assert (folders.give("as published", true, features, 4) == true).all()
    assert 0.1 < (folders.give("uniform20", true, features, 4) != true).mean() < 0.25


@pytest.mark.slow
def test_a_row_holds_what_is_stored(tmp_path: Path) -> None:
    pytest.importorskip("cleanlab")
    draw = np.random.default_rng(1)
    for name, colour in COLOURS.items():
        (tmp_path / "colours" / name).mkdir(parents=True)
        for i in range(100):
            pixels = np.clip(draw.normal(colour, 30, (12, 12, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).resize((72, 72)).save(tmp_path / f"colours/{name}/{i}.png")
    row = folders.make_row(tmp_path / "colours", "uniform20", tmp_path / "out")
    stored = json.loads((RESULTS / "held_out_folders.json").read_text())["runs"]
    (like,) = [it for it in stored if (it["folder"], it["labels"]) == ("hands", "uniform20")]
    assert {"folder", "labels", *row} == set(like) and row["oddly"].keys() == like["oddly"].keys()
    assert (row["images"], row["classes"]) == (400, 4) and 0.1 < row["wrong"] < 0.2
    assert row["oddly"]["f1"] > 0.5
    seen = sorted(it.name for it in (tmp_path / "out/colours/seen/features").iterdir())
    taken = sorted(it.name for it in (tmp_path / "out/colours/run/features").iterdir())
    assert seen == taken  # looked at once
