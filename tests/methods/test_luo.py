"""The variance penalty, by hand."""

from __future__ import annotations

import math

import pytest

from oddly.errors import InputError
from oddly.methods.luo import Luo
from tests.methods.toy import log_odds, make_batch, make_context, step


def test_loss_by_hand() -> None:
    method, context = Luo(penalty=10, ramp=0), make_context([0, 1], 2)
    method.setup(context)
    first, second = log_odds([0.5, 0.5], [0.2, 0.8]), log_odds([0.8, 0.2], [0.2, 0.8])
    plain = -(math.log(0.5) + math.log(0.8) + math.log(0.8) + math.log(0.8)) / 4
    variance = (0.3**2 + 0.3**2) / 2 / 2  # of the first example, mean over two
    loss = step(method, context, make_batch(first, [0, 1], second)).loss
    assert loss.item() == pytest.approx(plain + 10 * variance)


def test_the_penalty_rises() -> None:
    method, context = Luo(penalty=10, ramp=0.5), make_context([0], 2, epochs=10)
    penalties = []
    for context.epoch in range(7):
        method.begin_epoch(context)
        penalties.append(method.present_penalty)
    assert penalties[0] == pytest.approx(10 * math.exp(-5)) and penalties[5:] == [10, 10]
    assert penalties == sorted(penalties)


def test_bad_settings() -> None:
    with pytest.raises(InputError, match="luo's penalty must be at least 0"):
        Luo(penalty=-1)
