"""Noise matrices, counted and estimated, against loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from oddly.methods.transition import from_anchors, from_labels, from_trusted, posterior

P = torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.1, 0.3], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]])
LABELS = torch.tensor([0, 2, 1, 2])


def test_anchors() -> None:
    torch.testing.assert_close(from_anchors(P, 100), P[[0, 2, 3]])
    # Below the 70th percentile of each column: 0.6, 0.2 (row 0) and 0.1 (rows 0 and 2, the first)
    torch.testing.assert_close(from_anchors(P, 70), P[[3, 0, 0]])


@pytest.mark.parametrize("classes", [10, 50])
def test_anchors_are_of_their_class_however_many_there_are(classes: int) -> None:
    true = torch.arange(20 * classes) % classes
    sure = torch.linspace(0.5, 0.6, len(true))[:, None]
    rest = (1 - sure) / (classes - 1)
    found = from_anchors(torch.where(F.one_hot(true, classes).bool(), sure, rest))
    assert found.diag().min() > 0.5


def test_anchors_leave_the_probabilities_alone() -> None:
    before = P.clone()
    from_anchors(P, 50)
    assert torch.equal(P, before)


def test_from_labels_against_a_loop() -> None:
    expected = np.zeros((3, 3))
    for row, label in zip(P.numpy(), LABELS.numpy(), strict=True):
        for i in range(3):
            expected[i, label] += row[i]
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(from_labels(P, LABELS).numpy(), expected, atol=1e-5)


def test_from_trusted_by_hand() -> None:
    counted = from_trusted(torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 1, 1]), 2)
    expected = torch.tensor([[2.5 / 4, 1.5 / 4], [0.5 / 2, 1.5 / 2]])
    torch.testing.assert_close(counted, expected)


def test_posterior_by_hand() -> None:
    noise = torch.tensor([[0.9, 0.1], [0.4, 0.6]])
    found = posterior(torch.tensor([[0.5, 0.5]]), noise, torch.tensor([0]))
    torch.testing.assert_close(found, torch.tensor([[0.9 / 1.3, 0.4 / 1.3]]))
