"""mixup and CutMix against their formulas, written out example by example."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.methods.base import Batch
from oddly.methods.erm import ERM
from oddly.methods.mixup import Mixup, paste


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


def test_smoothed_labels(batch: Batch, model: nn.Linear) -> None:
    """A share s of each label over all three classes: own (1 - s) + the mean of all s."""
    losses = -F.log_softmax(model(batch.inputs), 1)
    own = losses.gather(1, batch.labels[:, None]).mean()
    smoothed = Mixup(alpha=0, smoothing=0.3).loss(model, batch).loss
    torch.testing.assert_close(smoothed, 0.7 * own + 0.3 * losses.mean())


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.97, 1.0])
def test_a_rectangle_is_pasted_and_counted(share: float) -> None:
    ours, theirs = torch.zeros(2, 3, 12, 8), torch.ones(2, 3, 12, 8)
    sizes = set()
    for seed in range(600):
        torch.manual_seed(seed)
        mixed, left = paste(ours, theirs, share)
        assert left == pytest.approx(1 - float(mixed.mean()))
        assert torch.equal(mixed[0], mixed[1]) and torch.equal(mixed[:, 0], mixed[:, 2])
        rows, columns = mixed[0, 0].amax(1), mixed[0, 0].amax(0)
        assert torch.equal(mixed[0, 0], rows[:, None] * columns)  # one rectangle
        assert all((line.diff() != 0).sum() <= 2 for line in (rows, columns))
        sizes.add(round(1 - left, 6))
    assert not ours.any()
    # The whole rectangle where it fits: sides of √(1 - share), to the pixel below.
    whole = [2 * (round(length * (1 - share) ** 0.5) // 2) for length in (12, 8)]
    assert max(sizes) == pytest.approx(whole[0] * whole[1] / 96)
    assert len(sizes) > 1 or share == 1.0 or not whole[1]


def test_cutmix_is_the_formula_on_pasted_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mixup, "_draw_share", lambda self: 0.4)
    torch.manual_seed(0)
    images, labels = torch.randn(5, 1, 6, 6), torch.tensor([0, 1, 2, 1, 0])
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
    torch.manual_seed(9)
    partner = torch.randperm(5)
    mixed, left = paste(images, images[partner], 0.4)
    assert 0 < left < 1 and partner.tolist() != list(range(5))
    expected = []
    for i, logits in enumerate(model(mixed)):
        own, other = (-F.log_softmax(logits, 0)[labels[at]] for at in (i, partner[i]))
        expected.append(left * own + (1 - left) * other)
    torch.manual_seed(9)
    output = Mixup(cut=True).loss(model, Batch(torch.arange(5), images, labels))
    torch.testing.assert_close(output.loss, torch.stack(expected).mean())
    assert output.logits is None


def test_negative_alpha() -> None:
    with pytest.raises(InputError, match=r"mixup's alpha must be at least 0, got -0\.5"):
        Mixup(alpha=-0.5)
