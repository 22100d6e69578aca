"""Folded networks beside those they stand for; and networks that cannot be folded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import timm
import torch
from timm.layers import StdConv2d
from torch import Tensor, nn

from oddly.models.folding import fold_norms


def settled(network: nn.Module, size: int = 32) -> nn.Module:
    """With norms that have seen something and do something."""
    torch.manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.3)
    network.train()(torch.randn(16, 3, size, size))
    return network.eval()


def norms(network: nn.Module) -> int:
    return sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())


@pytest.mark.parametrize(
    ("name", "left"),
    [("test_efficientnet", 0), ("resnet18", 0), ("mobilenetv3_small_050", 0), ("resnetv2_50", 17)],
)
def test_the_same_function_with_fewer_norms(name: str, left: int) -> None:
    network = settled(timm.create_model(name, num_classes=0))
    before = norms(network)
    folded = fold_norms(network, torch.rand(1, 3, 32, 32))
    assert (norms(network), norms(folded)) == (before, left) and before > left
    images = torch.randn(4, 3, 32, 32)
    with torch.no_grad():
        expected, found = network(images), folded(images)
    assert float(expected.std()) > 0.01
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * float(expected.max()))


class OtherOrder(nn.Module):
    """Holds a norm behind a convolution, and calls it before."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(self.norm(x))
        return out


class Standardised(nn.Module):
    """Scales its weights anew in every call, so that nothing can be folded into them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = StdConv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(self.conv(x))
        return out


@pytest.mark.parametrize("kind", [OtherOrder, Standardised, lambda: nn.Conv2d(3, 4, 3)])
def test_what_would_become_another_function_stays_as_it_is(kind: Callable[[], nn.Module]) -> None:
    network = settled(kind(), 8)
    assert fold_norms(network, torch.rand(1, 3, 8, 8)) is network


def test_norms_that_fit_no_convolution_stay() -> None:
    forgetful = nn.BatchNorm2d(4, track_running_stats=False)
    network = settled(nn.Sequential(nn.Conv2d(3, 4, 3), forgetful, nn.Conv2d(4, 4, 1)), 8)
    assert norms(fold_norms(network, torch.rand(2, 3, 8, 8))) == 1
    other = settled(nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3)), 8)
    assert norms(fold_norms(other, torch.rand(1, 3, 8, 8))) == 1


def test_broken_weights_are_left_to_whoever_looks_at_features() -> None:
    network = settled(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), 8)
    next(network.parameters()).data.fill_(torch.nan)
    assert fold_norms(network, torch.rand(1, 3, 8, 8)) is network
