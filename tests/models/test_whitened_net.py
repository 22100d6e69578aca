"""The whitened network by hand: its size, a plain twin, and what its first layer does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from oddly.core import find_head
from oddly.data import load_data
from oddly.data.base import DataOptions
from oddly.data.transforms import normalise
from oddly.models import whitened_net
from oddly.models.whitened_net import LEAST, Group, WhitenedNet, whitened, whitening_filters


def test_size_counted_by_hand() -> None:
    with torch.device("meta"):
        model = whitened(10)
    pairs = [(24, 128), (128, 128), (128, 128), (128, 384), (384, 384), (384, 384)]
    pairs += [(384, 512), (512, 512), (512, 512)]
    total = 24 + sum(9 * a * b + 2 * b for a, b in pairs) + 513 * 10
    assert sum(weight.numel() for weight in model.parameters()) == total == 9_918_498


def test_the_first_layer_is_not_learnt() -> None:
    model = whitened(10)
    assert "whitening" in model.state_dict()
    assert "whitening" not in dict(model.named_parameters())
    assert torch.equal(model.whitening[:12], -model.whitening[12:])


def test_filters_hardly_depend_on_each_other_in_photographs(cifar_root: Path) -> None:
    """On CIFAR-10 their outputs have about unit deviation, and correlate little."""
    data = load_data("cifar10", DataOptions(data_dir=cifar_root))
    assert isinstance(data.train.images, Tensor)
    images = normalise(data.train.images[:500], data.mean, data.std)
    outputs = F.conv2d(images, whitening_filters(3)[:12]).transpose(0, 1).flatten(1)
    deviations = outputs.std(1)
    assert float(deviations.min()) > 0.7 and float(deviations.max()) < 1.3
    assert float((outputs.corrcoef() - torch.eye(12)).abs().max()) < 0.35
    before = images.transpose(0, 1).flatten(1).corrcoef()
    assert float(before[0, 1]) > 0.85  # of red and green, as they come


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_other_numbers_of_channels_are_taken_one_by_one(channels: int) -> None:
    filters = whitening_filters(channels)
    assert filters.shape == (8 * channels, channels, 2, 2)
    for filter_ in filters:
        assert (filter_.abs().sum((1, 2)) > 0).sum() == 1
    gains = filters.flatten(1).norm(dim=1)
    torch.testing.assert_close(gains[0], 1 / torch.tensor(3.15 / 3**0.5).hypot(torch.tensor(LEAST)))


def plain_forward(model: WhitenedNet, x: Tensor) -> Tensor:
    x = F.gelu(F.conv2d(x, model.whitening) + model.bias[:, None, None])
    for group in model.groups:
        assert isinstance(group, Group)
        (a, b, c), (p, q, r) = group.convs, group.norms
        x = F.conv2d(x, a.weight, padding=1)
        height, width = (length // 2 for length in x.shape[2:])
        x = x[:, :, : 2 * height, : 2 * width].unflatten(3, (width, 2)).unflatten(2, (height, 2))
        x = F.gelu(p(x.amax((3, 5))))
        inside = F.gelu(q(F.conv2d(x, b.weight, padding=1)))
        x = F.gelu(x + r(F.conv2d(inside, c.weight, padding=1)))
    head = dict(model.named_parameters())["fc.parametrizations.weight.original"]
    return F.linear(x.flatten(2).amax(2), head / 32, model.fc.bias)


def test_forward_matches_the_plain_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whitened_net, "PLANES", (32, 40, 48))
    torch.manual_seed(0)
    model, x = whitened(5), torch.randn(4, 3, 20, 20)
    torch.testing.assert_close(model(x), plain_forward(model, x), rtol=1e-4, atol=1e-5)


def test_what_comes_in_goes_on_as_it_is() -> None:
    group, x = Group(8, 12), torch.randn(2, 8, 6, 6)
    torch.testing.assert_close(group.convs[0](x)[:, :8], x)
    inside = torch.randn(2, 12, 3, 3)
    torch.testing.assert_close(group.convs[2](inside), inside)


def test_the_head_found_is_all_between_features_and_logits() -> None:
    torch.manual_seed(0)
    model, x = whitened(5).eval(), torch.randn(2, 3, 16, 16)
    features = model.groups(F.gelu(F.conv2d(x, model.whitening, model.bias))).amax((2, 3))
    head = find_head(model, 5)
    torch.testing.assert_close(model(x), features @ head.weight.t() + head.bias)


@pytest.mark.parametrize(("factor", "diverges"), [(1.0, True), (whitened_net.HEAD_FACTOR, False)])
def test_a_large_rate_from_the_first_step_on(
    factor: float, diverges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whitened_net, "HEAD_FACTOR", factor)
    torch.manual_seed(0)
    model, x, labels = whitened(10), torch.randn(32, 3, 16, 16), torch.randint(10, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, nesterov=True)
    losses = []
    for _ in range(5):
        loss = F.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert (max(losses) > 6) is diverges, losses
    assert diverges or max(losses) < 4, losses
