"""Targets and the regulariser, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from oddly.errors import InputError
from oddly.methods.elr import ELR
from tests.methods.toy import log_odds, make_batch, make_context, step


def test_two_steps_by_hand() -> None:
    method, context = ELR(beta=0.7, weight=2.0), make_context([1], 2, epochs=2)
    method.setup(context)
    first = step(method, context, make_batch(log_odds([0.8, 0.2]), [1])).loss
    target = (0.3 * 0.8, 0.3 * 0.2)
    agreement = target[0] * 0.8 + target[1] * 0.2
    expected = -math.log(0.2) + 2 * math.log(1 - agreement)
    assert first.item() == pytest.approx(expected, rel=1e-5)
    step(method, context, make_batch(log_odds([0.5, 0.5]), [1]))
    expected_targets = [0.7 * target[0] + 0.3 * 0.5, 0.7 * target[1] + 0.3 * 0.5]
    assert method.targets[0].tolist() == pytest.approx(expected_targets, rel=1e-5)
    assert method.verdict is not None and method.verdict.keep.tolist() == [True]  # the guard


def test_another_class_in_the_targets_is_suspicious() -> None:
    method, context = ELR(), make_context([0, 0], 2, epochs=1)
    method.setup(context)
    step(method, context, make_batch(log_odds([0.8, 0.2], [0.1, 0.9]), [0, 0]))
    assert method.verdict is not None and method.verdict.keep.tolist() == [True, False]
    assert method.verdict.scores.tolist() == pytest.approx([-0.18, 0.24], abs=1e-4)


def test_targets_pass_no_gradient_and_rows_of_others_stay() -> None:
    method, context = ELR(), make_context([0, 0, 1], 2)
    method.setup(context)
    batch = make_batch(torch.randn(2, 2), [0, 0])
    method.loss(context.model, batch)
    assert not method.targets.requires_grad and method.targets[2].tolist() == [0, 0]


def test_bad_settings() -> None:
    with pytest.raises(InputError, match="beta must be within"):
        ELR(beta=1.0)
