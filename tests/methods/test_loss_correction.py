"""Forward and backward correction against explicit sums."""

from __future__ import annotations

import math

import pytest
import torch

from oddly.errors import InputError
from oddly.methods.loss_correction import LossCorrection, TrustedLossCorrection
from tests.methods.toy import go_to, log_odds, make_batch, make_context, step

NOISE = torch.tensor([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.0, 0.2, 0.8]])
P = [[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]
LABELS = [1, 2, 0]


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_against_explicit_sums(direction: str) -> None:
    method = LossCorrection(direction=direction)
    method.set_matrix(NOISE)
    found = method.correct(log_odds(*P), torch.tensor(LABELS))
    inverse = torch.linalg.inv(NOISE)
    for i, y in enumerate(LABELS):
        if direction == "forward":
            expected = -math.log(sum(P[i][k] * float(NOISE[k, y]) for k in range(3)))
        else:
            expected = sum(float(inverse[y, k]) * -math.log(P[i][k]) for k in range(3))
        assert found[i].item() == pytest.approx(expected, rel=1e-5)


def test_without_noise_both_are_cross_entropy() -> None:
    for direction in ("forward", "backward"):
        method = LossCorrection(direction=direction)
        method.set_matrix(torch.eye(3))
        found = method.correct(log_odds(*P), torch.tensor(LABELS))
        expected = torch.tensor([-math.log(P[i][y]) for i, y in enumerate(LABELS)])
        torch.testing.assert_close(found, expected)


def test_backward_is_unbiased() -> None:
    """Averaged over the noise, the corrected loss is the clean one: what the paper proves."""
    method = LossCorrection(direction="backward")
    method.set_matrix(NOISE)
    logits = log_odds(P[0]).repeat(3, 1)
    of_each_label = method.correct(logits, torch.arange(3))
    expected = [-math.log(value) for value in P[0]]
    torch.testing.assert_close(NOISE @ of_each_label, torch.tensor(expected))


def test_a_matrix_without_inverse() -> None:
    with pytest.raises(InputError, match="cannot be inverted .* use direction=forward"):
        LossCorrection(direction="backward").set_matrix(torch.full((3, 3), 1 / 3))


def test_the_two_stages() -> None:
    swept = torch.tensor([[0.9, 0.1], [0.3, 0.7]])
    method = LossCorrection(estimate="anchors")
    context = make_context([0, 1], 2, epochs=8, probabilities=swept)
    method.setup(context)
    stages = method.stages(8)
    assert [(s.name, s.epochs, s.fresh) for s in stages] == [
        ("plain", 2, False),
        ("corrected", 8, True),
    ]
    batch = make_batch(log_odds([0.9, 0.1], [0.3, 0.7]), [0, 1])
    for number, stage in enumerate(stages):
        go_to(context, stage, number)
        method.begin_stage(context)
        loss = step(method, context, batch).loss.item()
        plain = -(math.log(0.9) + math.log(0.7)) / 2
        assert (loss == pytest.approx(plain)) == (number == 0)
        method.end_stage(context)
    torch.testing.assert_close(method.matrix.sum(1), torch.ones(2))
    assert method.verdict is not None and method.verdict.keep.tolist() == [True, True]


def test_trusted_counts() -> None:
    assert TrustedLossCorrection.needs_trusted_labels
    assert [stage.epochs for stage in TrustedLossCorrection().stages(8)] == [8]


def test_bad_settings() -> None:
    with pytest.raises(InputError, match="direction must be forward or backward, got 'up'"):
        LossCorrection(direction="up")
