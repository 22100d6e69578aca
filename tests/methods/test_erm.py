"""Plain cross-entropy, and its logits handed on."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from oddly.methods.base import Batch
from oddly.methods.erm import ERM


def test_loss_by_hand() -> None:
    """Logits (0, log 3): class 1 has probability ¾."""
    inputs = torch.tensor([[0.0, math.log(3)]]).repeat(2, 1)
    output = ERM().loss(nn.Identity(), Batch(torch.arange(2), inputs, torch.tensor([1, 0])))
    assert output.loss.item() == pytest.approx((math.log(4 / 3) + math.log(4)) / 2)
    assert output.logits is inputs


def test_loss_can_be_minimised() -> None:
    model = nn.Linear(3, 2)
    output = ERM().loss(model, Batch(torch.arange(4), torch.ones(4, 3), torch.ones(4).long()))
    output.loss.backward()
    assert model.weight.grad is not None
    assert model.weight.grad.abs().sum() > 0
