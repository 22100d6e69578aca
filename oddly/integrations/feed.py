"""A loader and its Denoiser, kept in step with a trainer that owns the loop."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from oddly.core import Denoiser, Verdict
from oddly.errors import InputError


class Feed:
    """What Lightning draws from: no DataLoader, or it would put a sampler of its own into it."""

    def __init__(self, loader: DataLoader[Any], denoiser: Denoiser) -> None:
        self.loader, self.denoiser = loader, denoiser
        self._length = len(loader)
        self.done = 0  # batches of this epoch that were trained on

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:  # asked for early; begins with the epoch's first batch
        start = self.done * (self.loader.batch_size or 1)
        self.denoiser.sampler.set_epoch(self.denoiser.epoch, start)
        yield from self.loader

    def save(self) -> dict[str, Any]:
        return {"denoiser": self.denoiser.state_dict(), "done": self.done}

    def load(self, saved: dict[str, Any]) -> None:
        self.denoiser.load_state_dict(saved["denoiser"])
        self.done = saved["done"]

    def write(self, folder: Path, rank: int) -> None:
        """Each process its own: in the middle of an epoch they have seen different examples."""
        if folder.is_dir():  # a search for hyper-parameters keeps its checkpoints elsewhere
            torch.save(self.save(), folder / f"oddly_{rank}.pt")

    def read(self, folder: Path, rank: int) -> None:
        path = folder / f"oddly_{rank}.pt"
        if not path.exists():
            raise InputError(f"{path} is missing: the checkpoint was saved by another Trainer")
        self.load(torch.load(path, map_location="cpu", weights_only=True))

    def finish(self, epochs: int, model: nn.Module) -> Verdict | None:
        """Close what is not closed yet of these first epochs; returns a verdict made now."""
        verdict = None
        while self.denoiser.epoch < epochs:
            self.done = 0
            verdict = self.denoiser.end_epoch(model) or verdict
        return verdict

    # To have these tells Lightning that an epoch broken off goes on where it was.
    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """What `save` returns holds it all."""


def count_epochs(epochs: int | None, steps: int, loader: Any, per_step: int) -> int | None:
    """The epochs until either limit (-1: none); a step takes `per_step` of the loader's batches."""
    limits = [epochs] if epochs and epochs > 0 else []
    if steps > 0 and hasattr(getattr(loader, "dataset", None), "__len__"):
        limits.append(math.ceil(steps * per_step / len(loader)))
    return min(limits, default=None)


def warn_without(feed: Feed | None) -> None:
    """Tell whoever stopped before E."""
    if feed and feed.denoiser.verdict is None:
        warnings.warn("training ended before there was a verdict on the labels", stacklevel=3)
