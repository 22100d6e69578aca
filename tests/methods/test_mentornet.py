"""The predefined curriculum, epoch by epoch."""

from __future__ import annotations

import pytest
import torch

from oddly.errors import InputError
from oddly.methods.mentornet import MentorNet
from tests.methods.toy import make_context

LOSSES = torch.tensor([0.1, 0.2, 0.4, 2.0, 3.0])
LABELS = torch.zeros(5, dtype=torch.int64)


def weights_at(progress: float, moving: float = 1.0) -> list[float]:
    method, context = MentorNet(percentile=50, decay=1.0), make_context([0] * 5, 2, epochs=100)
    method.setup(context)
    method.moving = torch.tensor(moving)  # with decay 1 it stays there
    context.epoch = round(100 * progress)
    method.begin_epoch(context)
    return method.weigh(LOSSES, LABELS).tolist()


def test_by_epoch() -> None:
    assert weights_at(0.0) == weights_at(0.18) == [1] * 5
    assert weights_at(0.19) == weights_at(0.89) == [1, 1, 1, 0, 0]
    late = [1, 1, 1, 0, 0]
    assert weights_at(0.90) == late
    assert weights_at(0.95, moving=1.5) == pytest.approx([1, 1, 1, 0.5, 0])


def test_the_percentile_moves() -> None:
    method, context = MentorNet(percentile=75, decay=0.5), make_context([0] * 5, 2)
    method.setup(context)
    method.weigh(LOSSES, LABELS)
    assert method.moving.item() == pytest.approx(0.5 * 0 + 0.5 * 2.0)
    method.weigh(LOSSES, LABELS)
    assert method.moving.item() == pytest.approx(0.5 * 1.0 + 0.5 * 2.0)


@pytest.mark.parametrize(("progress", "kept"), [(0.0, 50), (0.5, 95)])
def test_examples_dropped_at_random(progress: float, kept: int) -> None:
    method = MentorNet()
    method.progress = progress
    torch.manual_seed(0)
    first, second = method.drop(torch.ones(100)), method.drop(torch.ones(100))
    assert first.sum() == second.sum() == kept and not torch.equal(first, second)


def test_bad_percentile() -> None:
    with pytest.raises(InputError, match="percentile must be within"):
        MentorNet(percentile=0)
