"""oddly: train an image classifier on labels you don't trust, and find the wrong ones.

Public names are loaded on first use: `import oddly` alone is fast.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oddly.clean.api import clean
    from oddly.core import (
        Denoiser,
        IndexedDataset,
        KeepSampler,
        LossLedger,
        Verdict,
        denoise,
        draw_losses,
        find_head,
    )
    from oddly.engine.api import train
    from oddly.errors import InputError
    from oddly.records import Run

__version__ = "0.1.0"

_HOMES = {
    "Denoiser": "oddly.core",
    "IndexedDataset": "oddly.core",
    "InputError": "oddly.errors",
    "KeepSampler": "oddly.core",
    "LossLedger": "oddly.core",
    "Run": "oddly.records",
    "Verdict": "oddly.core",
    "clean": "oddly.clean.api",
    "denoise": "oddly.core",
    "draw_losses": "oddly.core",
    "find_head": "oddly.core",
    "train": "oddly.engine.api",
}

__all__ = [
    "Denoiser",
    "IndexedDataset",
    "InputError",
    "KeepSampler",
    "LossLedger",
    "Run",
    "Verdict",
    "clean",
    "denoise",
    "draw_losses",
    "find_head",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'oddly' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class _Package(ModuleType):
    """Keeps `oddly.clean` the function: importing the package of that name would replace it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
