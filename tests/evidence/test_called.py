"""Classes called another: the labels are as they are said to be, and a row can be made again."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from evidence.called import judge
from evidence.called_labels import give, label_digits
from evidence.valley import NETWORKS

ALIKE = {0: 1, 1: 0, 2: 3, 3: 4, 4: 5, 5: 4}
TRUE = np.arange(6_000) % 6


def moved(kind: str) -> dict[tuple[int, int], float]:
    """Which share of a class is called which other, where any is."""
    given = give(kind, TRUE, ALIKE, seed=0)
    pairs = {(own, other) for own, other in zip(TRUE, given, strict=True) if own != other}
    return {(own, other): np.mean(given[own == TRUE] == other) for own, other in pairs}


def test_labels_of_half_the_classes_of_one_and_both_ways() -> None:
    half, one, both = moved("half 40"), moved("one 20"), moved("both ways 30")
    for found, rate in ((half, 0.4), (one, 0.2), (both, 0.3)):
        assert list(found.values()) == pytest.approx([rate] * len(found), abs=0.05)
    assert len(half) == 3 and len(one) == 1
    assert all(ALIKE[own] == other for own, other in [*half, *one])
    assert all((other, own) in both for own, other in both)
    assert (give("clean", TRUE, ALIKE, 0) == TRUE).all()


def test_digits_that_are_called_another() -> None:
    data = label_digits("one 20", seed=0)
    assert data.true_labels is not None
    changed = data.train.labels != data.true_labels
    assert set(data.true_labels[changed].tolist()) == {7}
    assert set(data.train.labels[changed].tolist()) == {1}
    assert torch.equal(label_digits("clean", 0).train.labels, data.true_labels)


@pytest.mark.slow
def test_four_in_ten_sevens_that_are_called_ones() -> None:
    """Random labels say nothing of them: without the look none is found."""
    row = judge(label_digits("one 40", seed=1), {**NETWORKS["ResNet-8"], "seed": 1})
    assert (row["called"], row["truly"]) == (1, 1)
    assert row["without"]["f1"] < 0.1 and row["with"]["f1"] > 0.9
