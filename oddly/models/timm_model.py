"""Any architecture of the timm package, fitted to our images."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import torch
from torch import nn

from oddly.errors import InputError, first_line


def import_timm() -> Any:
    """The timm package, or one line that says how to get it."""
    try:
        import timm
    except ModuleNotFoundError as error:
        # If timm itself lacks another package, show the full traceback.
        if error.name not in ("timm", "torchvision"):
            raise
        raise InputError(
            f"timm models need the package {error.name}: pip install timm torchvision"
        ) from error
    return timm


def nearest_timm_names(name: str) -> list[str]:
    """The timm name most similar to `name`, if any; empty if timm is not installed."""
    try:
        names = import_timm().list_models()
    except InputError:
        return []
    return get_close_matches(name, names, n=1, cutoff=0.5)


def create_timm_model(
    name: str,
    num_classes: int,
    in_channels: int,
    image_size: int,
    dropout: float = 0.0,
    pretrained: bool = False,
) -> nn.Module:
    """`timm.create_model`, fitted to our images and tried on one of them; 0 classes: no head."""
    timm = import_timm()
    if not timm.is_model(name):
        near = nearest_timm_names(name)
        hint = f"did you mean '{near[0]}'?" if near else "timm.list_models() shows them all"
        raise InputError(f"unknown timm model '{name}'; {hint}")
    options: dict[str, Any] = {"drop_rate": dropout} if dropout else {}
    # Only models tied to one size (ViT, Swin, …) have this argument; others raise an error.
    if timm.get_pretrained_cfg(name).fixed_input_size:
        options["img_size"] = image_size
    try:
        model: nn.Module = timm.create_model(
            name, pretrained=pretrained, num_classes=num_classes, in_chans=in_channels, **options
        )
    except OSError as error:  # no network, or a hub that refuses
        raise _unreachable(name, error) from error
    except (TypeError, ValueError, AssertionError, RuntimeError, ZeroDivisionError) as error:
        raise _misfit(name, in_channels, image_size, dropout, error) from error
    if dropout and not _drops(model, dropout):
        raise InputError(f"model '{name}' has no dropout; leave it at 0")
    try:
        _try_one_image(model, in_channels, image_size)
    except (AssertionError, RuntimeError, ValueError) as error:
        raise _misfit(name, in_channels, image_size, dropout, error) from error
    return model


def _drops(model: nn.Module, dropout: float) -> bool:
    """Whether the model uses the rate: timm puts it into Dropout layers or an attribute."""
    if getattr(model, "drop_rate", None) == dropout:
        return True
    return any(isinstance(m, nn.Dropout) and m.p == dropout for m in model.modules())


@torch.inference_mode()
def _try_one_image(model: nn.Module, in_channels: int, image_size: int) -> None:
    """Fail now, not in the first step, if images are too small; evaluation changes no state."""
    was_training = model.training
    model.eval()(torch.zeros(1, in_channels, image_size, image_size))
    model.train(was_training)


def _unreachable(name: str, error: Exception) -> InputError:
    return InputError(
        f"cannot download the pretrained weights of '{name}': {first_line(error)[:200]};"
        " use --weights FILE instead"
    )


def _misfit(
    name: str, in_channels: int, image_size: int, dropout: float, error: Exception
) -> InputError:
    images = f"{in_channels}x{image_size}x{image_size} images"
    with_dropout = f" with dropout {dropout:g}" if dropout else ""
    return InputError(
        f"timm model '{name}' cannot be built for {images}{with_dropout}: {first_line(error)}"
    )
