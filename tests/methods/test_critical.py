"""Critical points of a network that is a plane: those within reach of it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from oddly.methods.critical import critical_sample_ratio


def test_points_near_the_plane_are_critical() -> None:
    plane = nn.Sequential(nn.Flatten(), nn.Linear(1, 2))
    plane[1].weight.data = torch.tensor([[1.0], [-1.0]])
    nn.init.zeros_(plane[1].bias)
    plane.train()
    distances = torch.tensor([0.05, -0.05, 0.15, -0.35, 0.5, -0.9, 2.0, 0.29])
    inputs = distances.view(-1, 1, 1, 1)
    generator = torch.Generator().manual_seed(0)
    ratio = critical_sample_ratio(
        plane, inputs, step=0.05, spread=0.001, radius=0.3, fewest=0, generator=generator
    )
    assert ratio == pytest.approx(4 / 8)  # |x| < 0.3
    assert plane.training and torch.equal(inputs.flatten(), distances)


def test_it_stops_when_hardly_any_are_added() -> None:
    calls = []
    plane = nn.Sequential(nn.Flatten(), nn.Linear(1, 2))
    plane.register_forward_hook(lambda *_: calls.append(1))
    critical_sample_ratio(plane, torch.full((3, 1, 1, 1), 9.0), fewest=20)
    assert len(calls) == 3  # the predictions, one gradient, one look
