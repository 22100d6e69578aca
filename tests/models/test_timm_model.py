"""timm architectures by name: fitted to our images, or one clear line."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from oddly.errors import InputError
from oddly.models.timm_model import create_timm_model, nearest_timm_names


@pytest.fixture
def without_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    """None in `sys.modules` is Python's own way to make an import fail."""
    monkeypatch.setitem(sys.modules, "timm", None)


def test_convolutional_model_takes_our_channels_and_classes() -> None:
    pytest.importorskip("timm")
    model = create_timm_model("resnet10t", num_classes=7, in_channels=1, image_size=32)
    assert model.training
    assert model(torch.zeros(2, 1, 32, 32)).shape == (2, 7)


def test_vision_transformer_is_built_for_our_image_size() -> None:
    pytest.importorskip("timm")
    model = create_timm_model("vit_tiny_patch16_224", num_classes=3, in_channels=3, image_size=32)
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 3)
    assert model.pos_embed.shape[1] == 1 + (32 // 16) ** 2


def test_trying_an_image_leaves_no_trace() -> None:
    pytest.importorskip("timm")
    model = create_timm_model("resnet10t", num_classes=2, in_channels=3, image_size=32)
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    assert norms
    assert all(int(norm.num_batches_tracked) == 0 for norm in norms)
    assert not any(parameter.is_inference() for parameter in model.parameters())


def test_dropout_reaches_the_model() -> None:
    pytest.importorskip("timm")
    torch.manual_seed(0)
    model = create_timm_model("resnet10t", 5, 3, image_size=32, dropout=0.5)
    x = torch.randn(4, 3, 32, 32)
    assert not torch.equal(model(x), model(x))


def test_unknown_name_says_the_nearest() -> None:
    pytest.importorskip("timm")
    with pytest.raises(InputError, match="unknown timm model 'resnett50'; .*'resnet50'"):
        create_timm_model("resnett50", 10, 3, image_size=32)
    with pytest.raises(InputError, match=r"'qqqqqq'; timm.list_models\(\)"):
        create_timm_model("qqqqqq", 10, 3, image_size=32)


@pytest.mark.parametrize(
    ("name", "size"), [("inception_resnet_v2", 8), ("vit_tiny_patch16_224", 8)]
)
def test_images_that_are_too_small_are_refused_at_once(name: str, size: int) -> None:
    pytest.importorskip("timm")
    with pytest.raises(InputError, match=f"'{name}' cannot be built for 3x8x8 images: .") as error:
        create_timm_model(name, 10, 3, image_size=size)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("without_timm")
def test_missing_timm_names_the_extra() -> None:
    with pytest.raises(InputError, match=r"timm models need .*: pip install timm torchvision"):
        create_timm_model("resnet50", 10, 3, image_size=32)
    assert nearest_timm_names("resnet50") == []
