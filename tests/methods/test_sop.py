"""Who gets which gradient, and the two terms, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from oddly.methods.sop import SOP
from tests.methods.toy import log_odds, make_batch, make_context, step


def make(u: float, v: tuple[float, float]) -> tuple[SOP, float]:
    method, context = SOP(), make_context([1, 0], 2, epochs=1)
    method.setup(context)
    with torch.no_grad():
        method.u[0], method.v[0] = u, torch.tensor(v)
    loss = step(method, context, make_batch(log_odds([0.8, 0.2]), [1])).loss
    loss.backward()
    return method, loss.item()


def test_loss_by_hand() -> None:
    _, loss = make(0.5, (0.4, 0.7))
    # U = (0, .25), V = (.16, 0): V acts on classes other than the label, U on the label
    q = (0.8 - 0.16, 0.2 + 0.25)
    fit = -math.log(q[1] / sum(q))
    rest = (1 + 0 - 0.16 - 0) ** 2 + (0 + 0.25 - 0 - 1) ** 2
    assert loss == pytest.approx(fit + rest, rel=1e-5)


def test_v_learns_from_the_second_term_alone() -> None:
    method, _ = make(0.5, (0.4, 0.7))
    assert method.v.grad is not None and method.u.grad is not None
    # d/dv (1 - v²)² = -4 v (1 - v²); the label's own entry has none
    assert method.v.grad[0].tolist() == pytest.approx([-4 * 0.4 * (1 - 0.16), 0.0], rel=1e-5)
    # u: through q and through (u² - 1)²
    total = 0.8 - 0.16 + 0.45
    through_q = -(2 * 0.5) / 0.45 + (2 * 0.5) / total
    assert method.u.grad[0].item() == pytest.approx(through_q + 4 * 0.5 * (0.25 - 1), rel=1e-5)
    assert method.u.grad[1].item() == 0 and method.v.grad[1].tolist() == [0, 0]


def test_own_rates_without_momentum_or_decay() -> None:
    method, _ = make(0.0, (0.0, 0.0))
    groups = SOP(rate_u=2.0, rate_v=3.0)
    context = make_context([0], 2, epochs=75)
    context.batch_size = 64
    groups.setup(context)  # a quarter of 300 epochs, half of 128: twice the rates
    assert [group["lr"] for group in groups.parameter_groups()] == [4.0, 6.0]
    assert all(
        group["momentum"] == group["weight_decay"] == 0 for group in groups.parameter_groups()
    )
    assert float(method.u.detach().abs().max()) < 1e-6


def test_a_large_u_is_suspicious() -> None:
    method, _ = make(0.9, (0.0, 0.0))
    assert method.verdict is not None and method.verdict.keep.tolist() == [False, True]
