"""Dropout sits before the last layer, in training only."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from oddly.core import KeepSampler
from oddly.errors import InputError
from oddly.methods.base import Batch, Context
from oddly.methods.dropout import Dropout


def test_features_are_dropped_in_training_only() -> None:
    model = nn.Sequential(nn.Identity(), nn.Linear(1000, 2, bias=False))
    nn.init.ones_(model[1].weight)
    method = Dropout(rate=0.8)
    method.setup(Context(model, KeepSampler(4), 4, 2, epochs=1, seed=0))
    inputs = torch.ones(1, 1000)
    torch.manual_seed(0)
    outputs = torch.stack([model(inputs)[0, 0] for _ in range(200)])
    assert outputs.mean().item() == pytest.approx(1000, rel=0.02)  # scaled by 1 / (1 - 0.8)
    assert outputs.std().item() == pytest.approx(5 * (1000 * 0.8 * 0.2) ** 0.5, rel=0.2)
    assert model.eval()(inputs).tolist() == [[1000, 1000]]


def test_the_loss_is_cross_entropy() -> None:
    model = nn.Linear(3, 3)
    method = Dropout(rate=0.0)
    method.setup(Context(model, KeepSampler(4), 4, 3, epochs=1, seed=0))
    batch = Batch(torch.arange(3), torch.eye(3), torch.arange(3))
    expected = nn.functional.cross_entropy(model(torch.eye(3)), torch.arange(3))
    assert torch.equal(method.loss(model, batch).loss, expected)


def test_bad_rate() -> None:
    with pytest.raises(InputError, match="at least 0 and below 1, got 1"):
        Dropout(rate=1.0)
