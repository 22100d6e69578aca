"""Networks by name: ours, any WRN-depth-width, and every timm architecture."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from torch import nn

from oddly.errors import InputError, unknown_name
from oddly.models.fast_resnet import resnet9
from oddly.models.feature_head import FeatureHead
from oddly.models.resnet import ResNet, resnet8, resnet18, resnet20
from oddly.models.timm_model import create_timm_model, import_timm, nearest_timm_names
from oddly.models.whitened_net import whitened
from oddly.models.wide_resnet import WideResNet

__all__ = ["MODELS", "ResNet", "WideResNet", "build_model", "check_known"]


MODELS: dict[str, Callable[..., nn.Module]] = {
    "feature_head": FeatureHead,
    "resnet8": resnet8,
    "resnet9": resnet9,
    "resnet18": resnet18,
    "resnet20": resnet20,
    "whitened": whitened,
    "wrn-28-10": partial(WideResNet, 28, 10),  # the paper's: 36.5 million parameters
}
"""Name → builder(num_classes, in_channels); `build_model` also knows wrn-D-K and timm's names."""
WIDE = re.compile(r"wrn-(\d+)-(\d+)")


def build_model(
    name: str, num_classes: int, in_channels: int, image_size: int, dropout: float = 0.0
) -> nn.Module:
    """A freshly initialised network for square images; ours win over timm's of the same name."""
    if not 0 <= dropout < 1:
        raise InputError(f"dropout must be at least 0 and below 1, got {dropout:g}")
    if name.startswith("timm:"):
        name = name.removeprefix("timm:")
        return create_timm_model(name, num_classes, in_channels, image_size, dropout)
    if wide := WIDE.fullmatch(name):
        depth, width = int(wide[1]), int(wide[2])
        return WideResNet(depth, width, num_classes, in_channels, dropout)
    if name in MODELS:
        if dropout:
            raise InputError(f"model '{name}' has no dropout; leave it at 0 or use a wrn-D-K")
        return MODELS[name](num_classes, in_channels)
    check_known(name)
    return create_timm_model(name, num_classes, in_channels, image_size, dropout)


def check_known(name: str) -> None:
    """Refuse a name that is neither ours nor timm's."""
    if name in MODELS or name.startswith("timm:") or WIDE.fullmatch(name):
        return
    try:
        timm = import_timm()
    except InputError as error:
        raise InputError(f"{unknown_name('model', name, MODELS)}; {error}") from error
    if not timm.is_model(name):
        # Only the nearest of timm's thousand names, lest the message list them all.
        raise unknown_name("model", name, [*MODELS, *nearest_timm_names(name)])
