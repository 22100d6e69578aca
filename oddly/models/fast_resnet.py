"""A shallow, wide residual network that trains fast on small images (D. Page, 2018, DAWNBench)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrize import register_parametrization

from oddly.models.wide_resnet import initialise

PLANES = (64, 128, 256, 512)
HEAD_FACTOR = 1 / 8  # as in the original


class Layer(nn.Module):
    """conv-BN-ReLU; with `pool`, the image is halved before BN, which saves 3/4 of BN's work."""

    def __init__(self, in_planes: int, planes: int, pool: bool = False) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_planes, planes, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(planes)
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        if self.pool:
            x = F.max_pool2d(x, 2)
        # In place is safe: batch norm keeps its input for backward, not its output.
        return F.relu(self.bn(x), inplace=True)


class Residual(nn.Module):
    """Two layers beside the identity."""

    def __init__(self, planes: int) -> None:
        super().__init__()
        self.first, self.second = Layer(planes, planes), Layer(planes, planes)

    def forward(self, x: Tensor) -> Tensor:
        inside: Tensor = self.second(self.first(x))
        return x + inside


class Times(nn.Module):
    """Makes a weight a fixed multiple of the stored one; it then learns factor² times as fast."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, stored: Tensor) -> Tensor:
        return self.factor * stored


class ResNet9(nn.Module):
    """Four layers, the image halved by the last three; residual pairs after the second and last.

    At the start, the 512 averaged ReLUs are much the same for every image. Their squared length is
    400, and the curvature of the loss along the head grows with it (measured: 88), so momentum
    overshoots at any rate above 0.02. With the head's factor, that curvature is 0.6.

    Departures: average pooling at the end, where the original takes the maximum; the factor is on
    the head's weight, where the original has it on the logits. So `fc.weight` alone maps features
    to logits, as q_n assumes.
    """

    def __init__(self, num_classes: int, in_channels: int = 3) -> None:
        super().__init__()
        a, b, c, d = PLANES
        self.layers = nn.Sequential(
            Layer(in_channels, a),
            Layer(a, b, pool=True),
            Residual(b),
            Layer(b, c, pool=True),
            Layer(c, d, pool=True),
            Residual(d),
        )
        self.fc = nn.Linear(d, num_classes)
        initialise(self)
        register_parametrization(self.fc, "weight", Times(HEAD_FACTOR))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.fc(self.layers(x).mean(dim=(2, 3)))
        return logits


def resnet9(num_classes: int, in_channels: int = 3) -> ResNet9:
    """6.6 million parameters; two thirds of ResNet-18's arithmetic in less than half its layers."""
    return ResNet9(num_classes, in_channels)
