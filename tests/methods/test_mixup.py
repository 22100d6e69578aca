"""mixup against its formula, written out example by example."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.methods.base import Batch
from oddly.methods.erm import ERM
from oddly.methods.mixup import Mixup


@pytest.fixture
def batch() -> Batch:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(6, 4, generator=generator)
    return Batch(torch.arange(6), inputs, torch.tensor([0, 1, 2, 0, 1, 2]))


@pytest.fixture
def model() -> nn.Linear:
    layer = nn.Linear(4, 3)
    layer.weight.data = torch.randn(3, 4, generator=torch.Generator().manual_seed(2))
    return layer


def mixed_by_hand(model: nn.Module, batch: Batch, share: float, partner: Tensor) -> Tensor:
    losses = []
    for i, j in enumerate(partner.tolist()):
        logits = model(share * batch.inputs[i] + (1 - share) * batch.inputs[j])
        own, other = (-F.log_softmax(logits, 0)[batch.labels[at]] for at in (i, j))
        losses.append(share * own + (1 - share) * other)
    return torch.stack(losses).mean()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.9])
def test_loss_is_the_formula(
    share: float, batch: Batch, model: nn.Linear, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mixup, "_draw_share", lambda self: share)
    torch.manual_seed(7)
    partner = torch.randperm(6)
    assert partner.tolist() != list(range(6))
    torch.manual_seed(7)
    loss = Mixup().loss(model, batch).loss
    torch.testing.assert_close(loss, mixed_by_hand(model, batch, share, partner))


def test_there_are_no_logits_to_observe(batch: Batch, model: nn.Linear) -> None:
    assert Mixup().loss(model, batch).logits is None


def test_the_batch_is_left_alone(batch: Batch, model: nn.Linear) -> None:
    before = batch.inputs.clone()
    Mixup().loss(model, batch)
    assert torch.equal(batch.inputs, before)


def test_alpha_zero_is_erm(batch: Batch, model: nn.Linear) -> None:
    assert torch.equal(Mixup(alpha=0).loss(model, batch).loss, ERM().loss(model, batch).loss)


def test_the_runs_seed_decides(batch: Batch, model: nn.Linear) -> None:
    losses = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        losses.append(Mixup().loss(model, batch).loss.item())
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("alpha", [0.2, 1.0, 8.0])
def test_shares_follow_the_beta_distribution(alpha: float) -> None:
    """Beta(α, α) has mean ½ and variance 1 / (4 (2α + 1))."""
    torch.manual_seed(0)
    method = Mixup(alpha=alpha)
    shares = torch.tensor([method._draw_share() for _ in range(3000)])
    assert 0 <= shares.min() <= shares.max() <= 1
    assert shares.mean().item() == pytest.approx(0.5, abs=0.04)
    assert shares.var().item() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.1)


def test_negative_alpha() -> None:
    with pytest.raises(InputError, match=r"mixup's alpha must not be negative, it is -0\.5"):
        Mixup(alpha=-0.5)
