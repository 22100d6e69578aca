"""Wide residual networks, WRN-depth-width (Zagoruyko & Komodakis, 2016, arXiv 1605.07146)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.models.dropout import ByteDropout


class WideBlock(nn.Module):
    """BN-ReLU-conv twice, with dropout between the convolutions."""

    def __init__(
        self, in_planes: int, planes: int, stride: int, dropout: float, number: int
    ) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_planes)
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.dropout = ByteDropout(dropout, layer=number) if dropout else nn.Identity()
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.shortcut = (
            nn.Conv2d(in_planes, planes, 1, stride, bias=False)
            if stride != 1 or in_planes != planes
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        # In place is safe: batch norm keeps its input for backward, not its output.
        active = F.relu(self.bn1(x), inplace=True)
        out = F.relu(self.bn2(self.conv1(active)), inplace=True)
        residual: Tensor = self.conv2(self.dropout(out))
        # Where the shape changes, the authors' shortcut starts after the shared BN-ReLU.
        return residual.add_(x if self.shortcut is None else self.shortcut(active))


class WideResNet(nn.Module):
    """WRN-`depth`-`width`: three groups of (depth - 4) / 6 blocks, 16, 32, 64 x width planes."""

    def __init__(
        self,
        depth: int,
        width: int,
        num_classes: int,
        in_channels: int = 3,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6 or width < 1:
            raise InputError(
                f"no such model 'wrn-{depth}-{width}': wrn-D-K needs D = 6n + 4"
                " (10, 16, 22, 28, 34, 40, …) and K of at least 1"
            )
        planes = [16, 16 * width, 32 * width, 64 * width]
        blocks = (depth - 4) // 6
        self.stem = nn.Conv2d(in_channels, planes[0], 3, padding=1, bias=False)
        self.groups = nn.Sequential(
            *(
                WideBlock(
                    planes[g] if b == 0 else planes[g + 1],
                    planes[g + 1],
                    stride if b == 0 else 1,
                    dropout,
                    number=g * blocks + b,
                )
                for g, stride in enumerate((1, 2, 2))
                for b in range(blocks)
            )
        )
        self.bn = nn.BatchNorm2d(planes[3])
        self.fc = nn.Linear(planes[3], num_classes)
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn(self.groups(self.stem(x))), inplace=True)
        logits: Tensor = self.fc(x.mean(dim=(2, 3)))
        return logits


@torch.no_grad()
def initialise(model: nn.Module) -> None:
    """He's initialisation for convolutions; a zero bias for the head."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
