"""CIFAR ResNets against published parameter counts and a plain out-of-place twin."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.models.resnet import BasicBlock, ResNet, Subsample, resnet8, resnet18, resnet20
from tests.models.twin import check_twin


@pytest.mark.parametrize(
    ("build", "parameters", "features"),
    [
        # He et al. give 0.27 M for 20 layers; the others follow by hand from the layer table.
        (resnet8, 75_290, 64),
        (resnet20, 269_722, 64),
        (resnet18, 11_173_962, 512),
    ],
)
def test_size(build: Callable[..., ResNet], parameters: int, features: int) -> None:
    with torch.device("meta"):
        model = build(num_classes=10, in_channels=3)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
    assert model.fc.in_features == features


def test_resnet8_counted_by_hand() -> None:
    def pair(before: int, planes: int) -> int:
        return 9 * before * planes + 9 * planes * planes + 4 * planes

    total = 3 * 16 * 9 + 2 * 16 + pair(16, 16) + pair(16, 32) + pair(32, 64) + 65 * 10
    assert total == 75_290


def test_subsample_takes_every_second_pixel_and_pads_with_zero_planes() -> None:
    x = torch.arange(32.0).reshape(1, 2, 4, 4)
    out = Subsample(2, 4, 2)(x)
    assert out[0].tolist() == [
        [[0, 0], [0, 0]],
        [[0, 2], [8, 10]],
        [[16, 18], [24, 26]],
        [[0, 0], [0, 0]],
    ]


def plain_forward(model: ResNet, x: Tensor) -> Tensor:
    x = torch.relu(model.bn(model.stem(x)))
    for block in model.groups:
        assert isinstance(block, BasicBlock)
        out = torch.relu(block.bn1(block.conv1(x)))
        x = torch.relu(block.bn2(block.conv2(out)) + block.shortcut(x))
    return model.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


@pytest.mark.parametrize("project", [True, False])
def test_in_place_steps_change_neither_logits_nor_gradients(project: bool) -> None:
    torch.manual_seed(0)
    model = ResNet((4, 8, 16), 2, project, num_classes=5, in_channels=1).double()
    x = torch.randn(4, 1, 8, 8, dtype=torch.float64)
    check_twin(model, x, plain_forward)


@pytest.mark.parametrize("build", [resnet8, resnet18, resnet20])
def test_digits_sized_images_pass_and_stay_channels_last(build: Callable[..., ResNet]) -> None:
    model = build(num_classes=10, in_channels=1).to(memory_format=torch.channels_last)
    x = torch.randn(2, 1, 8, 8).to(memory_format=torch.channels_last)
    maps = model.groups(model.stem(x))
    assert maps.shape[2] == (1 if build is resnet18 else 2)
    assert maps.is_contiguous(memory_format=torch.channels_last)
    assert isinstance(model.fc, nn.Linear)
    assert model(x).shape == (2, 10)
