"""ResNet-9 by hand: its size, and a plain out-of-place twin."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

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
    return model.fc(x.flatten(2).mean(2))


def test_forward_and_gradients_match_the_plain_twin() -> None:
    torch.manual_seed(0)
    model, x = resnet9(5), torch.randn(4, 3, 16, 16)
    gradients = []
    for logits in (model(x), plain_forward(model, x)):
        model.zero_grad()
        logits.square().sum().backward()
        gradients.append([layer.weight.grad.clone() for layer in (model.fc, *convolutions(model))])
    torch.testing.assert_close(model(x), plain_forward(model, x), rtol=1e-4, atol=1e-4)
    for one, other in zip(*gradients, strict=True):
        assert float((one - other).norm() / other.norm()) < 1e-3


def convolutions(model: ResNet9) -> list[torch.nn.Conv2d]:
    return [module for module in model.modules() if isinstance(module, torch.nn.Conv2d)]
