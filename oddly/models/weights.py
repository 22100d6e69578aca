"""Start from trained weights: a file, or those that timm downloads."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from oddly.errors import InputError, first_line
from oddly.models.timm_model import import_timm


def load_weights(model: nn.Module, weights: str, name: str) -> None:
    """Load every tensor that fits by name and shape; only the final layer may be missing."""
    state = _fetch(name) if weights == "pretrained" else read_state(Path(weights))
    own = model.state_dict()
    fitting = {k: v for k, v in state.items() if k in own and own[k].shape == v.shape}
    missing = [k for k in own if k not in fitting]
    if not set(missing) <= final_layer(model):
        raise InputError(
            f"weights {weights}: {len(missing)} of {len(own)} tensors of {name} are missing or have"
            f" another shape, first {missing[0]}"
        )
    model.load_state_dict({**own, **fitting})


def final_layer(model: nn.Module) -> set[str]:
    """Names of the final layer's tensors: of timm's `get_classifier()`, else of the last layer."""
    named = model.state_dict(keep_vars=True)
    get_classifier = getattr(model, "get_classifier", None)
    if callable(get_classifier):
        own = {id(tensor) for tensor in get_classifier().parameters()}
        return {name for name, tensor in named.items() if id(tensor) in own}
    layer = list(named)[-1].rpartition(".")[0]
    return {name for name in named if name.rpartition(".")[0] == layer}


def _fetch(name: str) -> dict[str, Tensor]:
    try:
        model = import_timm().create_model(name.removeprefix("timm:"), pretrained=True)
    except (OSError, RuntimeError, ValueError) as error:  # no network, no such weights
        raise InputError(f"no pretrained weights for '{name}': {first_line(error)}") from None
    state: dict[str, Tensor] = model.state_dict()
    return state


def read_state(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name, unwrapped from a training script's checkpoint."""
    if not path.is_file():
        raise InputError(
            f"weights {path}: no such file; use a file, pretrained, or packaged (backbones only)"
        )
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file as load_safetensors

            return load_safetensors(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"weights {path} cannot be read: {first_line(error)}") from None
    except Exception:  # many kinds; torch's message suggests weights_only=False, which is unsafe
        raise InputError(
            f"weights {path} cannot be read: damaged, or not a file of plain tensors; save the"
            " model's state_dict() with torch.save or as .safetensors"
        ) from None
    for key in ("state_dict", "model"):  # how training scripts wrap it
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict) or not all(isinstance(t, Tensor) for t in state.values()):
        raise InputError(f"weights {path} is not a state dict (names and tensors)")
    return {name.removeprefix("module."): tensor for name, tensor in state.items()}
