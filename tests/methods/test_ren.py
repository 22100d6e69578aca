"""Weights from trusted examples: against finite differences, and against the virtual step."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from oddly.methods.base import Batch
from oddly.methods.ren import Ren
from tests.methods.toy import log_odds, make_context


class Small(nn.Module):
    """With batch normalisation, which the passes must leave as it was."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.body(inputs)
        return output


class FixedTrusted:
    def __init__(self, batch: Batch) -> None:
        self.batch, self.labels, self.given_labels = batch, batch.labels, batch.labels

    def __len__(self) -> int:
        return len(self.labels)

    def draw(self, size: int) -> Batch:
        return self.batch

    def features(self, model: nn.Module) -> Tensor:
        raise NotImplementedError


@pytest.fixture
def parts() -> tuple[Small, Batch, Batch]:
    torch.manual_seed(3)
    model = Small().double()
    batches = [
        Batch(torch.arange(n), torch.randn(n, 4).double(), torch.randint(3, (n,))) for n in (7, 5)
    ]
    return model, batches[0], batches[1]


def losses_at(model: nn.Module, weights: dict[str, Tensor], batch: Batch) -> Tensor:
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    logits = functional_call(model, (weights, buffers), batch.inputs)
    return F.cross_entropy(logits, batch.labels, reduction="none")


def test_agreement_is_the_dot_product_of_gradients(parts: tuple[Small, Batch, Batch]) -> None:
    model, batch, trusted = parts
    found = Ren().agreement(model, batch, trusted)
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    clean = torch.autograd.grad(
        losses_at(model, dict(model.named_parameters()), trusted).mean(), list(model.parameters())
    )
    for i in range(7):
        own = torch.autograd.grad(
            losses_at(model, dict(model.named_parameters()), batch)[i], list(model.parameters())
        )
        dot = sum(float((a * b).sum()) for a, b in zip(own, clean, strict=True))
        assert found[i].item() == pytest.approx(dot, rel=1e-4, abs=1e-7)
    step = 1e-5
    ends = [
        losses_at(
            model,
            {n: w + sign * step * g for (n, w), g in zip(weights.items(), clean, strict=True)},
            batch,
        )
        for sign in (1, -1)
    ]
    torch.testing.assert_close(
        found.double(), (ends[0] - ends[1]).detach() / (2 * step), rtol=1e-3, atol=1e-5
    )


def test_it_is_the_papers_derivative_through_a_virtual_step(
    parts: tuple[Small, Batch, Batch],
) -> None:
    model, batch, trusted = parts
    weights = dict(model.named_parameters())
    eps = torch.zeros(7, dtype=torch.float64, requires_grad=True)
    inner = (eps * losses_at(model, weights, batch)).sum()
    slopes = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
    moved = {n: w - g for (n, w), g in zip(weights.items(), slopes, strict=True)}
    (outer,) = torch.autograd.grad(losses_at(model, moved, trusted).mean(), eps)
    torch.testing.assert_close(
        Ren().agreement(model, batch, trusted).double(), -outer, rtol=1e-4, atol=1e-6
    )


def test_the_passes_leave_the_network_alone(parts: tuple[Small, Batch, Batch]) -> None:
    model, batch, trusted = parts
    before = {name: value.clone() for name, value in model.state_dict().items()}
    Ren().agreement(model, batch, trusted)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(weight.grad is None for weight in model.parameters())


def test_weights_sum_to_one_or_are_all_zero() -> None:
    """Logits = inputs + shift: the gradient by the shift is p - e_y, so all is plain."""
    method, context = Ren(), make_context([0, 1], 2)
    trusted = Batch(torch.arange(1), log_odds([0.5, 0.5]), torch.tensor([0]))
    context.trusted = FixedTrusted(trusted)
    method.setup(context)
    batch = Batch(torch.arange(2), log_odds([0.5, 0.5], [0.5, 0.5]), torch.tensor([0, 1]))
    # (-.5, .5)·(-.5, .5) = .5 and (.5, -.5)·(-.5, .5) = -.5, which becomes 0
    assert method.weigh(context.model, batch).tolist() == [1, 0]
    against = Batch(torch.arange(2), batch.inputs, torch.tensor([1, 1]))
    assert method.weigh(context.model, against).tolist() == [0, 0]
    assert method.loss(context.model, against).loss.item() == 0
