from __future__ import annotations

from pathlib import Path

import pytest
import timm
import torch
from torch import nn

from oddly.errors import InputError
from oddly.models.backbone import (
    PACKAGED,
    load_backbone,
    load_fine_tuned,
    load_packaged,
    pixel_statistics,
)

TINY = "test_efficientnet"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    path = tmp_path_factory.mktemp("weights") / "tiny.pth"
    torch.save(timm.create_model(TINY).state_dict(), path)
    return path


def test_the_packaged_weights_classify_as_imagenet_networks_do() -> None:
    network = timm.create_model(PACKAGED)
    before = network.get_classifier().weight.clone()
    load_packaged(network)
    assert torch.equal(before, network.get_classifier().weight)  # a new head stays new
    backbone = load_backbone(PACKAGED, "packaged", 64)
    assert backbone.features == 1280 and not any(w.requires_grad for w in backbone.parameters())
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    features = backbone(images)
    by_hand = network.eval().forward_features((images.float() - 127) / 128).mean((2, 3))
    assert torch.allclose(features, by_hand, atol=1e-4)
    # Features of pixel 127, the middle: the same for all places and never negative (ReLU6).
    assert float(features.min()) >= 0 and float(features.std()) > 0.05


def test_weights_from_a_file(weights: Path) -> None:
    backbone = load_backbone(TINY, str(weights), 32)
    network = timm.create_model(TINY).eval()
    network.load_state_dict(torch.load(weights, weights_only=True))
    images = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    mean, std = (torch.tensor(each)[:, None, None] for each in pixel_statistics(TINY, ""))
    by_hand = network.forward_features((images / 255 - mean) / std).mean((2, 3))
    assert by_hand.shape == (2, backbone.features)
    assert torch.allclose(backbone(images), by_hand, atol=1e-4)


def test_fine_tuned_networks_get_a_new_classifier(weights: Path) -> None:
    network = load_fine_tuned(TINY, str(weights), 7, 32)
    state = torch.load(weights, weights_only=True)
    assert torch.equal(network.state_dict()["conv_stem.weight"], state["conv_stem.weight"])
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 7)
    assert all(weight.requires_grad for weight in network.parameters())
    assert load_fine_tuned(PACKAGED, "packaged", 7, 32)(torch.zeros(2, 3, 32, 32)).shape == (2, 7)


def test_pixels_are_scaled_as_the_weights_expect() -> None:
    assert pixel_statistics(PACKAGED, "packaged") == ((127 / 255,) * 3, (128 / 255,) * 3)
    assert pixel_statistics("resnet18", "pretrained")[0] == (0.485, 0.456, 0.406)


def test_what_is_wrong_with_weights_is_told_in_one_line(tmp_path: Path, weights: Path) -> None:
    (tmp_path / "junk.pth").write_bytes(b"junk")
    torch.save([1, 2], tmp_path / "list.pth")
    torch.save({"conv_stem.weight": torch.zeros(1)}, tmp_path / "other.pth")
    state = torch.load(weights, weights_only=True)
    torch.save({**state, "conv_stem.weight": torch.zeros(1)}, tmp_path / "shape.pth")
    for name, words in (
        ("gone.pth", "no such file"),
        ("junk.pth", "cannot be read"),
        ("list.pth", "not a state dict"),
        ("other.pth", "tensors are missing"),
        ("shape.pth", "has shape"),
    ):
        with pytest.raises(InputError, match=words) as told:
            load_backbone(TINY, str(tmp_path / name), 32)
        assert "\n" not in str(told.value)
    with pytest.raises(InputError, match="packaged weights only exist for"):
        load_backbone("resnet18", "packaged", 32)
    with pytest.raises(InputError, match="unknown timm model"):
        load_backbone("resnet1888888", "pretrained", 32)


@pytest.mark.parametrize("shape", [(0,), (3, 2)])
def test_what_is_no_vector_of_features_is_told(
    shape: tuple[int, ...], weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of timm's give none at all without their classifier."""
    monkeypatch.setattr(nn.Module, "__call__", lambda *_: torch.zeros(1, *shape))
    with pytest.raises(InputError, match=f"returns {'x'.join(map(str, shape))} numbers per image"):
        load_backbone(TINY, str(weights), 32)
