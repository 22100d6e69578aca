"""Official files are read, the noise is what it says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from evidence.labels import confuse, replace_some, weak_mistakes
from evidence.small_images import SETS, give_labels, read
from oddly.errors import InputError
from tests.evidence.made import blobs, write_official


def test_official_files_packed_or_not(tmp_path: Path) -> None:
    write_official(tmp_path, 30)
    images, labels = read(tmp_path)
    assert images.shape == (30, 28, 28) and images.dtype == np.uint8 and images.max() > 200
    assert labels.shape == (30,) and set(labels.tolist()) <= set(range(10))
    for file in list(tmp_path.iterdir()):
        (tmp_path / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
        file.unlink()
    again, same = read(tmp_path)
    assert (again == images).all() and (same == labels).all()


def test_digits_of_the_npm_package(tmp_path: Path) -> None:
    for k in range(10):
        (tmp_path / f"{k}.json").write_text(json.dumps({"data": [k / 10] * 784 * 2}))
    images, labels = read(tmp_path)
    assert labels.tolist() == [k for k in range(10) for _ in (0, 1)]
    assert images[:, 0, 0].tolist() == [round(255 * k / 10) for k in labels.tolist()]


def test_clothes_of_the_npm_package(tmp_path: Path) -> None:
    for k in range(10):
        (tmp_path / f"{k}.json").write_text(json.dumps({"data": [[k] * 784, [], [20 * k] * 784]}))
    images, labels = read(tmp_path)
    assert labels.tolist() == [k for k in range(10) for _ in (0, 1)] and images.dtype == np.uint8
    assert images[:, 9, 9].tolist() == [value for k in range(10) for value in (k, 20 * k)]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte\.gz is not there"):
        read(tmp_path)


@pytest.mark.parametrize("draw", [np.random.default_rng(3), np.random.RandomState(3)])
def test_shares_of_wrong_labels(draw: np.random.Generator | np.random.RandomState) -> None:
    true = np.arange(20_000) % 10
    replaced = replace_some(true, 10, 0.4, draw)
    assert (replaced != true).mean() == pytest.approx(0.36, abs=0.02)
    called = confuse(true, {1: 2}, 0.5, draw)
    assert set(called[called != true].tolist()) == {2}
    assert (called[true == 1] == 2).mean() == pytest.approx(0.5, abs=0.05)


def test_a_weak_classifier_errs_as_often_as_asked() -> None:
    images = blobs(6_000)
    given = weak_mistakes(images.inputs, images.true, 10, 0.2)
    assert (given != images.true).mean() == pytest.approx(0.2, abs=0.03)


def test_a_set_is_labelled_by_kind() -> None:
    true = np.arange(6_000) % 10
    digits = SETS["mnist"]
    assert (give_labels("clean", true, digits, 0) == true).all()
    assert (give_labels("uniform10", true, digits, 0) != true).mean() == pytest.approx(
        0.09, abs=0.02
    )
    asked = give_labels("asymmetric30", true, digits, 0)
    assert {(a, b) for a, b in zip(true, asked, strict=True) if a != b} == set(
        digits.confused.items()
    )
