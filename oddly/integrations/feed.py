"""Keep a loader and its Denoiser in step with a trainer that owns the training loop."""

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
    """For `carry`: leave the batch as it is and return the indices beside it."""
    return batch, index


class Feed:
    """The loader for Lightning; not a DataLoader, because Lightning would replace its sampler."""

    def __init__(self, loader: DataLoader[Any], denoiser: Denoiser) -> None:
        self.loader, self.denoiser = loader, denoiser
        denoiser.warns = False  # `warn_user` warns instead, at the user's line
        self._length = len(loader)
        self.done = 0  # number of batches of this epoch that were trained on
        self.indices: dict[int, Tensor] = {}  # indices of drawn batches, by number in the epoch
        self.observed = False  # whether anything was observed in this process

    def __len__(self) -> int:
        return self._length

    @property
    def dataset(self) -> Any:
        """The user's dataset, without indices."""
        dataset: Any = self.loader.dataset
        return dataset.dataset.dataset

    @property
    def batch_size(self) -> int | None:
        return self.loader.batch_size

    def __iter__(self) -> Iterator[Any]:  # the body runs only when the first batch is drawn
        start = self.done * (self.loader.batch_size or 1)
        self.denoiser.sampler.set_epoch(self.denoiser.epoch, start)
        self.indices.clear()
        for number, (batch, index) in enumerate(self.loader, self.done):
            self.indices[number] = index
            yield batch

    def observe(self, index: Tensor, logits: Tensor, labels: Any) -> None:
        """Pass a batch to the Denoiser."""
        if not isinstance(labels, Tensor) or labels.shape != index.shape:
            found = tuple(labels.shape) if isinstance(labels, Tensor) else type(labels).__name__
            raise InputError(
                f"a batch of {len(index)} examples has labels {found}, expected one class index per"
                f" example; {_advise(index, labels)}"
            )
        self.observed = True
        self.denoiser.observe(index, logits, labels)

    def save(self) -> dict[str, Any]:
        return {"denoiser": self.denoiser.state_dict(), "done": self.done}

    def load(self, saved: dict[str, Any]) -> None:
        self.denoiser.load_state_dict(saved["denoiser"])
        self.done = saved["done"]

    def write(self, folder: Path, rank: int) -> None:
        """Save this process's state; within an epoch, processes have seen different examples."""
        if folder.is_dir():  # a hyper-parameter search stores its checkpoints elsewhere
            torch.save(self.save(), folder / f"oddly_{rank}.pt")

    def read(self, folder: Path, rank: int) -> None:
        path = folder / f"oddly_{rank}.pt"
        if not path.exists():
            saved = len(list(folder.glob("oddly_*.pt")))
            reason = f"by {saved} processes; resume with as many" if saved else "by another Trainer"
            raise InputError(f"{path} is missing: the checkpoint was saved {reason}")
        self.load(torch.load(path, map_location="cpu", weights_only=True))

    def finish(self, epochs: int, model: nn.Module) -> Verdict | None:
        """End epochs until `epochs` are finished; returns the verdict if it was made now."""
        verdict = None
        while self.denoiser.epoch < epochs:
            self.done = 0
            try:
                verdict = self.denoiser.end_epoch(model) or verdict
            except InputError as error:
                if self.denoiser.epoch != self.denoiser.rule.epochs:
                    raise
                warn_user(f"no verdict on the labels: {error}")  # do not lose a finished training
        if verdict and (unseen := int(verdict.scores.isnan().sum())):
            warn_user(f"{unseen} of {len(verdict.keep)} examples were never seen and are kept")
        return verdict

    def conclude(self, model: nn.Module, stopped: bool) -> Verdict | None:
        """Called after training; makes the verdict if training was stopped before E."""
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
        except InputError as error:  # do not lose a finished training
            warn_user(f"training was stopped before the verdict on the labels: {error}")
            return None

    def judge_now(self, model: nn.Module) -> Verdict:
        """The verdict; if training was interrupted before E, from what was seen until then."""
        early = self.denoiser.verdict is None
        if early and count_ranks() > 1:  # the other processes may have ended: do not wait for them
            raise InputError(
                "judge_now only works in a single process; with several, continue from a checkpoint"
            )
        verdict = self.denoiser.judge_now(model)
        for caution in verdict.cautions() if early else ():
            warn_user(caution)
        return verdict

    def tell_interrupted(self, call: str, caught: str) -> None:
        """Tell a user who interrupted training before E how to get a verdict.

        It is not made unasked: a checkpoint saved on the way out would contain it, and training
        that continues from that checkpoint would already prune.
        """
        if self.denoiser.verdict is not None or not self.observed:
            return
        how = "continue from a checkpoint"
        if count_ranks() == 1:
            how += f", or get a verdict now with {call} (in a script, catch {caught})"
        warn_user(f"training was interrupted before the verdict on the labels: {how}")

    # Because these exist, Lightning continues an interrupted epoch where it was.
    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to do: `load` restores everything."""


def _advise(index: Tensor, labels: Any) -> str:
    """What to do about such labels; class indices of another number were not mixed."""
    if isinstance(labels, Tensor) and labels.dim() == 1 and not labels.is_floating_point():
        return (
            "does your collate_fn leave out or repeat some? Leave them out of the dataset instead"
        )
    return "convert to one-hot or mix labels in the training step instead"


def check_adapted(options: Iterable[str]) -> None:
    """Refuse options that an adapter sets itself, before training starts."""
    check_options(options, taken=("refill", "carry"))


def count_epochs(
    epochs: int | None, steps: int, loader: Any, per_step: int, limit: float = 1.0
) -> int | None:
    """The number of epochs until either limit is reached (-1: no limit).

    A step takes `per_step` batches of the loader. An epoch has at most `limit` of them (a float:
    that share).
    """
    limits = [epochs] if epochs and epochs > 0 else []
    if steps > 0 and hasattr(getattr(loader, "dataset", None), "__len__"):
        batches = min(len(loader), limit) if isinstance(limit, int) else int(len(loader) * limit)
        limits.append(math.ceil(steps / max(1, math.ceil(batches / per_step))))
    return min(limits, default=None)


def warn_user(text: str) -> None:
    """Warn at the user's line that called the trainer, however deep in the stack we are."""
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in TRAINERS:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)
