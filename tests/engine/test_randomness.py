"""Random numbers outside a run do not depend on it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from oddly.engine.randomness import fork_randomness


def test_what_is_drawn_inside_is_not_missed_outside() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    with fork_randomness():
        torch.manual_seed(8)
        torch.rand(9)
    assert torch.equal(torch.rand(4), expected)


def test_with_several_gpus_all_are_restored_and_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Warnings are errors here. The GPUs are made up: nobody tests on a machine with several."""
    states = [torch.tensor([1]), torch.tensor([2])]

    def set_state(state: Tensor, device: int) -> None:
        states[device] = state

    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(states))
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: states[device].clone())
    monkeypatch.setattr(torch.cuda, "set_rng_state", set_state)
    monkeypatch.setattr(torch.random, "_fork_rng_warned_already", False)
    with fork_randomness():
        states[:] = [torch.tensor([0]), torch.tensor([0])]
    assert [int(state) for state in states] == [1, 2]
