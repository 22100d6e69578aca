"""WRN-d-k against the paper's parameter counts and a plain out-of-place twin."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.models.wide_resnet import WideBlock, WideResNet
from tests.models.twin import check_twin


def expected_parameters(depth: int, width: int, num_classes: int, in_channels: int) -> int:
    """Counted from the paper's table 1, without looking at the code."""
    total, before = in_channels * 16 * 9, 16
    for planes in (16 * width, 32 * width, 64 * width):
        for _ in range((depth - 4) // 6):
            total += 2 * before + 9 * before * planes + 2 * planes + 9 * planes * planes
            total += before * planes if before != planes else 0
            before = planes
    return total + 2 * before + (before + 1) * num_classes


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_wrn_28_10_has_36_5_million_parameters() -> None:
    with torch.device("meta"):
        model = WideResNet(28, 10, num_classes=10)
    assert count(model) == expected_parameters(28, 10, 10, 3) == 36_479_194


@pytest.mark.parametrize(("depth", "width"), [(10, 1), (16, 2), (22, 3), (40, 1)])
def test_parameters_follow_depth_and_width(depth: int, width: int) -> None:
    with torch.device("meta"):
        model = WideResNet(depth, width, num_classes=7, in_channels=1, dropout=0.3)
    assert count(model) == expected_parameters(depth, width, 7, 1)
    wide = [m for m in model.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)]
    # The name's depth counts the 3x3 convolutions and one shortcut for each of the three groups.
    assert len(wide) + 3 == depth


def plain_block(block: WideBlock, x: Tensor) -> Tensor:
    active = torch.relu(block.bn1(x))
    out = block.conv2(torch.relu(block.bn2(block.conv1(active))))
    return out + (x if block.shortcut is None else block.shortcut(active))


def plain_forward(model: WideResNet, x: Tensor) -> Tensor:
    x = model.stem(x)
    for block in model.groups:
        assert isinstance(block, WideBlock)
        x = plain_block(block, x)
    return model.fc(F.adaptive_avg_pool2d(torch.relu(model.bn(x)), 1).flatten(1))


def test_in_place_steps_change_neither_logits_nor_gradients() -> None:
    torch.manual_seed(0)
    model = WideResNet(16, 2, num_classes=5).double()
    x = torch.randn(4, 3, 8, 8, dtype=torch.float64)
    check_twin(model, x, plain_forward)


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (3, 32), (4, 9)])
def test_groups_halve_the_image_twice_and_the_head_sees_a_pooled_relu(
    channels: int, size: int
) -> None:
    model = WideResNet(10, 1, num_classes=3, in_channels=channels)
    seen: dict[str, Tensor] = {}
    model.groups.register_forward_hook(lambda _m, _i, out: seen.update(maps=out.detach().clone()))
    model.fc.register_forward_pre_hook(lambda _m, args: seen.update(features=args[0].detach()))

    logits = model(torch.randn(2, channels, size, size))

    side = math.ceil(math.ceil(size / 2) / 2)
    assert seen["maps"].shape == (2, 64, side, side)
    assert seen["features"].shape == (2, 64)
    assert bool((seen["features"] >= 0).all())
    assert logits.shape == (2, 3)


def test_channels_last_stays_channels_last() -> None:
    model = WideResNet(10, 2, num_classes=3).to(memory_format=torch.channels_last)
    out = model.groups(model.stem(torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)))
    assert out.is_contiguous(memory_format=torch.channels_last)


def test_initial_weights_follow_he() -> None:
    torch.manual_seed(0)
    model = WideResNet(10, 4, num_classes=10)
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.weight.numel() > 10_000:
            area = module.kernel_size[0] * module.kernel_size[1]
            he = math.sqrt(2 / (module.out_channels * area))
            assert module.weight.std().item() == pytest.approx(he, rel=0.05)
    assert not model.fc.bias.any()


def test_dropout_sits_between_the_convolutions_and_only_in_training() -> None:
    torch.manual_seed(0)
    model = WideResNet(16, 1, num_classes=3, dropout=0.5)
    rates = [m.p for m in model.modules() if isinstance(m, nn.Dropout)]
    assert rates == [0.5] * 6
    x = torch.randn(2, 3, 8, 8)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))


def test_it_learns_eight_images_by_heart() -> None:
    torch.manual_seed(0)
    model = WideResNet(10, 1, num_classes=4, in_channels=1)
    x, labels = torch.randn(8, 1, 8, 8), torch.arange(8) % 4
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(25):
        loss = F.cross_entropy(model(x), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.1


@pytest.mark.parametrize(("depth", "width"), [(27, 10), (4, 1), (0, 2), (28, 0)])
def test_impossible_depth_or_width_is_refused(depth: int, width: int) -> None:
    with pytest.raises(InputError, match=rf"wrn-{depth}-{width}.*D = 6n \+ 4.*at least 1"):
        WideResNet(depth, width, num_classes=10)
