"""The same training judged with allowance for unlike classes, and without."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from evidence import unlike_sizes
from evidence.again import RESULTS
from evidence.features import Features, held_out
from oddly.core.sentinels import confusion
from tests.evidence.made import blobs, write_official

ROWS = json.loads((RESULTS / "unlike_sizes.json").read_text())["rows"]


def test_every_class_keeps_fewer_than_the_one_before() -> None:
    true = np.arange(5_000) % 10
    drawn = [unlike_sizes.draw(true, 10, 30, 3_000, seed) for seed in (0, 1)]
    for places in drawn:
        assert len(set(places)) == len(places) < 3_000
        sizes = np.sort(np.bincount(true[places], minlength=10))
        assert 20 <= sizes[-1] / sizes[0] <= 40 and (np.diff(sizes) > 0).all()
    rarest = [np.bincount(true[places]).argmin() for places in drawn]
    assert rarest[0] != rarest[1]


def overlapping() -> Features:
    images = blobs(3_000)
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(images.inputs.shape, generator=generator)
    return replace(images, inputs=images.inputs + 3 * noise)


def test_a_row_has_what_is_stored() -> None:
    loads = {"made": overlapping}
    row = unlike_sizes.judge_head("made", "uniform 20", 30, 3_000, 0, loads)
    kinds = [r for r in ROWS if r["labels"] == "uniform 20 %"]
    assert all(["images", "labels", "ratio", "seed", *row] == list(stored) for stored in kinds)
    assert row["without"] != row["with"] and confusion.SIZES > 0  # put back
    large, small = row["classes_of"]
    assert large > 5 * small


def test_small_images_are_looked_at_as_oddly_clean_does(tmp_path: Path) -> None:
    write_official(tmp_path, 20)
    images = held_out("fashion", tmp_path, tmp_path / "out")
    assert images.inputs.shape == (20, 1280) and sorted(images.label("clean")) == sorted(
        images.true
    )


def test_every_training_is_stored() -> None:
    keys = ("images", "labels", "ratio", "seed")
    named = [name for name, _ in unlike_sizes.cells({})]
    assert named == [{key: row[key] for key in keys} for row in ROWS]
