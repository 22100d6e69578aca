"""`build_model`: every name of the registry, the open families, and the names nobody knows."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from oddly.errors import InputError
from oddly.models import MODELS, build_model


@pytest.mark.parametrize("name", [name for name in MODELS if name != "wrn-28-10"])
def test_every_small_model_classifies_digits(name: str) -> None:
    model = build_model(name, num_classes=10, in_channels=1, image_size=8)
    assert isinstance(model.fc, nn.Linear)
    assert model(torch.zeros(2, 1, 8, 8)).shape == (2, 10)


def test_wrn_28_10_is_the_papers_network() -> None:
    with torch.device("meta"):
        model = build_model("wrn-28-10", 100, 3, image_size=32, dropout=0.3)
    assert sum(p.numel() for p in model.parameters()) == 36_479_194 + 90 * 641
    assert {m.p for m in model.modules() if isinstance(m, nn.Dropout)} == {0.3}


def test_any_wide_resnet_by_name() -> None:
    model = build_model("wrn-10-2", num_classes=4, in_channels=3, image_size=16)
    assert model.fc.in_features == 128
    assert model(torch.zeros(2, 3, 16, 16)).shape == (2, 4)


def test_same_seed_same_weights() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(3)
        states.append(build_model("resnet8", 10, 1, image_size=8).state_dict())
    assert all(torch.equal(a, b) for a, b in zip(*(s.values() for s in states), strict=True))


def test_our_resnet18_wins_and_the_prefix_asks_for_timms() -> None:
    pytest.importorskip("timm")
    ours = build_model("resnet18", 10, 3, image_size=32)
    theirs = build_model("timm:resnet18", 10, 3, image_size=32)
    assert ours.stem.kernel_size == (3, 3)
    assert theirs.conv1.kernel_size == (7, 7)


def test_a_bare_timm_name_works() -> None:
    pytest.importorskip("timm")
    model = build_model("resnet10t", num_classes=5, in_channels=1, image_size=32)
    assert model(torch.zeros(2, 1, 32, 32)).shape == (2, 5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet17", "unknown model 'resnet17'; did you mean 'resnet18'"),
        ("wrn-28", "unknown model 'wrn-28'; did you mean 'wrn-28-10'"),
        ("wrn-27-10", r"'wrn-27-10'.*D = 6n \+ 4"),
        (
            "zzzzzzzz",
            "unknown model 'zzzzzzzz'; known: feature_head, resnet18, resnet20,",
        ),
        ("", "unknown model ''; known"),
    ],
)
def test_unknown_names_get_one_line(name: str, message: str) -> None:
    pytest.importorskip("timm")
    with pytest.raises(InputError, match=message):
        build_model(name, 10, 3, image_size=32)


def test_the_nearest_name_may_be_timms() -> None:
    pytest.importorskip("timm")
    with pytest.raises(InputError, match="did you mean 'convnext_tiny'"):
        build_model("convnext-tiny", 10, 3, image_size=32)


def test_without_timm_the_line_says_how_to_get_more_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match=r"unknown model 'convnext_tiny'; .*pip install timm"):
        build_model("convnext_tiny", 10, 3, image_size=32)


def test_dropout_is_refused_where_there_is_none() -> None:
    with pytest.raises(InputError, match="'resnet8' has no dropout"):
        build_model("resnet8", 10, 1, image_size=8, dropout=0.1)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, float("nan")])
def test_dropout_outside_its_range_is_refused(dropout: float) -> None:
    with pytest.raises(InputError, match="at least 0 and below 1"):
        build_model("wrn-10-1", 10, 1, image_size=8, dropout=dropout)
