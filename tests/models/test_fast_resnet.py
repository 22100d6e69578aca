"""ResNet-9 by hand: its size, and a plain out-of-place twin."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from oddly.core import find_head
from oddly.models import fast_resnet
from oddly.models.fast_resnet import Layer, Residual, ResNet9, resnet9


def test_size_counted_by_hand() -> None:
    with torch.device("meta"):
        model = resnet9(10)
    pairs = [(3, 64), (64, 128), (128, 128), (128, 128), (128, 256), (256, 512)]
    pairs += [(512, 512), (512, 512)]
    total = sum(9 * a * b + 2 * b for a, b in pairs) + 513 * 10
    assert sum(weight.numel() for weight in model.parameters()) == total == 6_573_130


def twin(layer: Layer, x: Tensor) -> Tensor:
    x = F.conv2d(x, layer.conv.weight, padding=1)
    if layer.pool:
        b, c, h, w = x.shape
        x = x.reshape(b, c, h // 2, 2, w // 2, 2).amax((3, 5))
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
    x = (x - mean[:, None, None]) / (variance[:, None, None] + layer.bn.eps).sqrt()
    return torch.relu(x)  # scale 1 and shift 0 before the first step


def plain_forward(model: ResNet9, x: Tensor) -> Tensor:
    for part in model.layers:
        if isinstance(part, Residual):
            x = x + twin(part.second, twin(part.first, x))
        else:
            assert isinstance(part, Layer)
            x = twin(part, x)
    return F.linear(x.flatten(2).mean(2), stored_head(model) / 8, model.fc.bias)


def stored_head(model: ResNet9) -> Tensor:
    return dict(model.named_parameters())["fc.parametrizations.weight.original"]


def test_forward_and_gradients_match_the_plain_twin() -> None:
    torch.manual_seed(0)
    model, x = resnet9(5), torch.randn(4, 3, 16, 16)
    gradients = []
    for logits in (model(x), plain_forward(model, x)):
        model.zero_grad()
        logits.square().sum().backward()
        learnt = [stored_head(model), *(layer.weight for layer in convolutions(model))]
        gradients.append([weight.grad.clone() for weight in learnt])
    torch.testing.assert_close(model(x), plain_forward(model, x), rtol=1e-4, atol=1e-4)
    for one, other in zip(*gradients, strict=True):
        assert float((one - other).norm() / other.norm()) < 1e-3


def convolutions(model: ResNet9) -> list[torch.nn.Conv2d]:
    return [module for module in model.modules() if isinstance(module, torch.nn.Conv2d)]


def test_the_head_found_is_all_between_features_and_logits() -> None:
    """The paper's q_n takes logits from the weights of the head that is found."""
    torch.manual_seed(0)
    model, x = resnet9(5).eval(), torch.randn(2, 3, 16, 16)
    head, features = find_head(model, 5), model.layers(x).mean((2, 3))
    torch.testing.assert_close(model(x), features @ head.weight.t() + head.bias)


@pytest.mark.parametrize(("factor", "diverges"), [(1.0, True), (fast_resnet.HEAD_FACTOR, False)])
def test_a_large_rate_from_the_first_step_on(
    factor: float, diverges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast_resnet, "HEAD_FACTOR", factor)
    torch.manual_seed(0)
    model, x, labels = resnet9(10), torch.randn(32, 3, 8, 8), torch.randint(10, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, nesterov=True)
    losses = []
    for _ in range(6):
        loss = F.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert (max(losses) > 10) is diverges, losses
    assert diverges or max(losses) < 3, losses
