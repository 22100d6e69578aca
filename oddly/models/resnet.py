"""Small residual networks for small images (He et al., 2015, arXiv 1512.03385, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from oddly.models.wide_resnet import initialise


class Subsample(nn.Module):
    """The paper's shortcut A, free of parameters: every `stride`-th pixel, new planes are zero."""

    def __init__(self, in_planes: int, planes: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.extra = planes - in_planes

    def forward(self, x: Tensor) -> Tensor:
        x = x[:, :, :: self.stride, :: self.stride]
        return F.pad(x, (0, 0, 0, 0, self.extra // 2, self.extra - self.extra // 2))


class BasicBlock(nn.Module):
    """conv-BN-ReLU-conv-BN, added to the shortcut, then ReLU."""

    def __init__(self, in_planes: int, planes: int, stride: int, project: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_planes != planes:
            self.shortcut = Subsample(in_planes, planes, stride)
            if project:
                convolution = nn.Conv2d(in_planes, planes, 1, stride, bias=False)
                self.shortcut = nn.Sequential(convolution, nn.BatchNorm2d(planes))

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        # In place is safe: neither batch norm nor the sum keeps its result for backward.
        return F.relu(out.add_(self.shortcut(x)), inplace=True)


class ResNet(nn.Module):
    """A 3x3 stem without pooling, one group per entry of `planes`, each of `blocks` blocks.

    `project` chooses the shortcut where the shape changes: a 1x1 convolution (B) or none (A).
    """

    def __init__(
        self,
        planes: Sequence[int],
        blocks: int,
        project: bool,
        num_classes: int,
        in_channels: int = 3,
    ) -> None:
        super().__init__()
        self.stem = nn.Conv2d(in_channels, planes[0], 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(planes[0])
        layers: list[nn.Module] = []
        before = planes[0]
        for group, width in enumerate(planes):
            for block in range(blocks):
                stride = 2 if group and not block else 1
                layers.append(BasicBlock(before, width, stride, project))
                before = width
        self.groups = nn.Sequential(*layers)
        self.fc = nn.Linear(before, num_classes)
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.groups(F.relu(self.bn(self.stem(x)), inplace=True))
        logits: Tensor = self.fc(x.mean(dim=(2, 3)))
        return logits


def resnet8(num_classes: int, in_channels: int = 3) -> ResNet:
    """6n + 2 layers with n = 1: 75 thousand parameters, for CPUs and tests."""
    return ResNet((16, 32, 64), 1, False, num_classes, in_channels)


def resnet20(num_classes: int, in_channels: int = 3) -> ResNet:
    """6n + 2 layers with n = 3: 270 thousand parameters."""
    return ResNet((16, 32, 64), 3, False, num_classes, in_channels)


def resnet18(num_classes: int, in_channels: int = 3) -> ResNet:
    """ImageNet's ResNet-18 with a stem for small images: 11.2 million parameters."""
    return ResNet((64, 128, 256, 512), 2, True, num_classes, in_channels)
