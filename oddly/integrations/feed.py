"""A loader and its Denoiser, kept in step with a trainer that owns the loop."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from oddly.core import Denoiser, Verdict
from oddly.core.loader import check_options
from oddly.core.ranks import count_ranks
from oddly.errors import InputError

TRAINERS = {"oddly", "lightning", "lightning_utilities", "transformers", "accelerate"}
TRAINERS |= {"torch", "contextlib"}


def beside(batch: Any, index: Tensor) -> tuple[Any, Tensor]:
    """A way to carry indices: the batch stays as it is."""
    return batch, index


class Feed:
    """What Lightning draws from: no DataLoader, or it would put a sampler of its own into it."""

    def __init__(self, loader: DataLoader[Any], denoiser: Denoiser) -> None:
        self.loader, self.denoiser = loader, denoiser
        denoiser.warns = False  # `warn_user` does, where the user is
        self._length = len(loader)
        self.done = 0  # batches of this epoch that were trained on
        self.indices: dict[int, Tensor] = {}  # of batches drawn, by their number in the epoch
        self.observed = False  # whether anything was, in this process

    def __len__(self) -> int:
        return self._length

    @property
    def dataset(self) -> Any:
        """Yours, without indices."""
        dataset: Any = self.loader.dataset
        return dataset.dataset.dataset

    @property
    def batch_size(self) -> int | None:
        return self.loader.batch_size

    def __iter__(self) -> Iterator[Any]:  # asked for early; begins with the epoch's first batch
        start = self.done * (self.loader.batch_size or 1)
        self.denoiser.sampler.set_epoch(self.denoiser.epoch, start)
        self.indices.clear()
        for number, (batch, index) in enumerate(self.loader, self.done):
            self.indices[number] = index
            yield batch

    def observe(self, index: Tensor, logits: Tensor, labels: Any) -> None:
        """Hand a batch to the Denoiser."""
        if not isinstance(labels, Tensor) or labels.shape != index.shape:
            found = tuple(labels.shape) if isinstance(labels, Tensor) else type(labels).__name__
            raise InputError(
                f"a batch of {len(index)} examples has labels {found}, expected one class index per"
                " example; convert to one-hot or mix labels in the training step instead"
            )
        self.observed = True
        self.denoiser.observe(index, logits, labels)

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
            saved = len(list(folder.glob("oddly_*.pt")))
            reason = f"by {saved} processes; resume with as many" if saved else "by another Trainer"
            raise InputError(f"{path} is missing: the checkpoint was saved {reason}")
        self.load(torch.load(path, map_location="cpu", weights_only=True))

    def finish(self, epochs: int, model: nn.Module) -> Verdict | None:
        """Close what is not closed yet of these first epochs; returns a verdict made now."""
        verdict = None
        while self.denoiser.epoch < epochs:
            self.done = 0
            verdict = self.denoiser.end_epoch(model) or verdict
        if verdict and (unseen := int(verdict.scores.isnan().sum())):
            warn_user(f"{unseen} of {len(verdict.keep)} examples were never seen and are kept")
        return verdict

    def conclude(self, model: nn.Module, stopped: bool) -> Verdict | None:
        """When training is over: where it was stopped before E, a verdict by what there was."""
        if self.denoiser.verdict is not None:
            return None
        if not stopped or not self.denoiser.epoch:
            warn_user(
                "training ended before the verdict on the labels: set epochs= to the number of"
                " epochs you train, or prune_after= to the epoch to judge after"
            )
            return None
        try:
            return self.denoiser.judge_now(model)
        except InputError as error:  # no reason to lose a finished training
            warn_user(f"training was stopped before the verdict on the labels: {error}")
            return None

    def judge_now(self, model: nn.Module) -> Verdict:
        """The verdict; if training was interrupted before E, from what was seen until then."""
        early = self.denoiser.verdict is None
        if early and count_ranks() > 1:  # the others may be gone: no waiting
            raise InputError(
                "judge_now only works in a single process; with several, continue from a checkpoint"
            )
        verdict = self.denoiser.judge_now(model)
        for caution in verdict.cautions() if early else ():
            warn_user(caution)
        return verdict

    def tell_interrupted(self, call: str, caught: str) -> None:
        """How whoever broke training off before E comes to a verdict all the same.

        Nothing is judged unasked: a checkpoint saved on the way out would hold that verdict, and
        training that goes on from it would prune by it.
        """
        if self.denoiser.verdict is not None or not self.observed:
            return
        how = "continue from a checkpoint"
        if count_ranks() == 1:
            how += f", or get a verdict now with {call} (in a script, catch {caught})"
        warn_user(f"training was interrupted before the verdict on the labels: {how}")

    # To have these tells Lightning that an epoch broken off goes on where it was.
    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """What `save` returns holds it all."""


def check_adapted(options: Iterable[str]) -> None:
    """Refuse, before training begins, what an adapter's user cannot say."""
    check_options(options, taken=("refill", "carry"))


def count_epochs(
    epochs: int | None, steps: int, loader: Any, per_step: int, limit: float = 1.0
) -> int | None:
    """The epochs until either limit (-1: none) is reached.

    A step takes `per_step` of the loader's batches, of which there are at most `limit` in an
    epoch (a float: that share of them).
    """
    limits = [epochs] if epochs and epochs > 0 else []
    if steps > 0 and hasattr(getattr(loader, "dataset", None), "__len__"):
        batches = min(len(loader), limit) if isinstance(limit, int) else int(len(loader) * limit)
        limits.append(math.ceil(steps / max(1, math.ceil(batches / per_step))))
    return min(limits, default=None)


def warn_user(text: str) -> None:
    """Warn at the line of the user's that trains, however deep below it this happens."""
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in TRAINERS:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)
