"""Who trains on what, how many are kept, and the noise rate found."""

from __future__ import annotations

import math

import pytest
import torch

from oddly.errors import InputError
from oddly.methods.co_teaching import CoTeaching, pick_smallest
from tests.methods.toy import log_odds, make_batch, make_context, step


def test_pick_smallest() -> None:
    losses = torch.tensor([3.0, 1.0, 2.0, 4.0])
    assert pick_smallest(losses, 0.5).tolist() == [1, 2]
    assert pick_smallest(losses, 0.0).tolist() == [1]


def test_each_trains_on_what_the_other_picks() -> None:
    method, context = CoTeaching(noise_rate=0.5, ramp=1), make_context([0, 0], 2, epochs=3)
    method.setup(context)
    with torch.no_grad():  # the second network sees the classes the other way round
        method.second.shift += torch.tensor([0.0, 20.0])  # type: ignore[operator]
    context.epoch = 1
    batch = make_batch(log_odds([0.9, 0.1], [0.2, 0.8]), [0, 0])
    loss = step(method, context, batch).loss.item()
    second = torch.nn.functional.cross_entropy(
        batch.inputs + torch.tensor([0.0, 20.0]), batch.labels, reduction="none"
    )
    # both pick example 0 (the smaller loss in either network's eyes)
    assert loss == pytest.approx(-math.log(0.9) + float(second[0]), rel=1e-4)


def test_the_share_kept_falls_to_the_noise_rate() -> None:
    method, context = CoTeaching(noise_rate=0.4, ramp=4), make_context([0], 2)
    method.setup(context)
    shares = []
    for context.epoch in range(6):
        method.begin_epoch(context)
        shares.append(1 - method.forget)
    assert shares == pytest.approx([1.0, 0.9, 0.8, 0.7, 0.6, 0.6])


def test_the_noise_rate_is_taken_from_the_run() -> None:
    method, context = CoTeaching(ramp=1), make_context([0, 0, 0, 0], 2, epochs=1)
    method.setup(context)
    rows = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.2, 0.8]]
    step(method, context, make_batch(log_odds(*rows), [0] * 4))
    assert method.rate == pytest.approx(0.25)
    assert method.verdict is not None and method.verdict.keep.tolist() == [True] * 3 + [False]


def test_no_more_than_half_is_taken_to_be_wrong() -> None:
    method, context = CoTeaching(ramp=1), make_context([0, 0, 0, 0], 2, epochs=1)
    method.setup(context)
    rows = [[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.2, 0.8]]
    step(method, context, make_batch(log_odds(*rows), [0] * 4))
    assert method.rate == 0.5


def test_bad_rate() -> None:
    with pytest.raises(InputError, match="noise_rate must be at least 0 and below 1"):
        CoTeaching(noise_rate=1.0)
