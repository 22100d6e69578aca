"""Lightning: a callback, and a `training_step` that also returns its logits."""

from __future__ import annotations

import math
import os
import tempfile
import uuid
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from oddly.core import Verdict, denoise
from oddly.core.indexed import find_label
from oddly.errors import InputError
from oddly.integrations.feed import Feed, beside, check_adapted, count_epochs, warn_user

try:
    from lightning.pytorch import Callback
    from lightning.pytorch.utilities import rank_zero_info, rank_zero_only
    from lightning.pytorch.utilities.exceptions import SIGTERMException
except ImportError:
    raise InputError('Lightning is not installed: pip install "oddly[lightning]"') from None

INTERRUPTIONS = (KeyboardInterrupt, SIGTERMException)


class Denoise(Callback):
    """Finds wrong labels while Lightning trains and drops them after E.

        trainer = Trainer(max_epochs=40, callbacks=[Denoise(num_classes=10)])

    Your `training_step` must `return {"loss": loss, "logits": logits}`; batches stay as they are.
    Epochs keep their length. `options` are those of `oddly.denoise` and `oddly.Denoiser`.
    """

    def __init__(self, num_classes: int, **options: Any) -> None:
        check_adapted(options)
        self.options = {"num_classes": num_classes, **options}
        self._feed: Feed | None = None  # of this fit, or of the last one until another begins
        self._active = False  # whether this fit is one to judge labels by
        self._stage = ""
        self._refused: Exception | None = None
        self._first: int | None = None  # the step before this fit's first epoch, if that is whole
        self._saved: dict[str, Any] = {}
        # Where a process that Lightning starts from this one (`ddp_spawn`) stores the verdict.
        self._home, name = os.getpid(), f"oddly-{uuid.uuid4().hex}.pt"
        self._left = Path(tempfile.gettempdir(), name)
        weakref.finalize(self, self._left.unlink, missing_ok=True)

    @property
    def verdict(self) -> Verdict | None:
        """None before E."""
        if os.getpid() == self._home and self._left.exists():  # newer: a fit that begins removes it
            return Verdict.from_state(torch.load(self._left, map_location="cpu", weights_only=True))
        if self._feed:
            return self._feed.denoiser.verdict
        state = self._saved["denoiser"]["verdict"] if self._saved else None
        return state and Verdict.from_state(state)

    def setup(self, trainer: Any, model: Any, stage: str) -> None:
        self._stage, self._active, self._refused = stage, False, None
        if stage != "fit" or trainer.fast_dev_run or trainer.overfit_batches:
            return  # a debugging run over a few batches: nothing to judge
        self._left.unlink(missing_ok=True)
        if trainer.reload_dataloaders_every_n_epochs:
            raise InputError(
                "Denoise needs a single loader: set reload_dataloaders_every_n_epochs=0"
            )
        # A second fit of the same Trainer continues the first one, from the start of an epoch.
        goes_on = self._feed and trainer.global_step
        self._saved = {**self._feed.save(), "done": 0} if self._feed and goes_on else {}
        self._limits = trainer.max_epochs, trainer.max_steps  # a learning-rate finder changes them
        source = _find_source(trainer)
        if source is None:
            raise InputError(
                "Denoise does not support this version of Lightning: use 2.5.3 to 2.6, or"
                " oddly.denoise in your own loop"
            )
        request = type(source).dataloader
        source.dataloader = lambda: self._follow_or_refuse(trainer, request(source))

    def teardown(self, trainer: Any, model: Any, stage: str) -> None:
        if (source := _find_source(trainer)) is not None:
            vars(source).pop("dataloader", None)
        if os.getpid() != self._home and trainer.is_global_zero and stage == "fit" and self.verdict:
            torch.save(self.verdict.state_dict(), half := self._left.with_suffix(".half"))
            half.replace(self._left)

    def on_exception(self, trainer: Any, model: Any, exception: BaseException) -> None:
        if self._feed and self._active and isinstance(exception, INTERRUPTIONS):
            tell = rank_zero_only(self._feed.tell_interrupted)
            tell("judge_now(model) of Denoise", "SystemExit")
        self.teardown(trainer, model, self._stage)

    def judge_now(self, model: nn.Module) -> Verdict:
        """The verdict; if training was interrupted before E, from what was seen until then."""
        if not self._feed:
            raise InputError("nothing to judge: Denoise has followed no fit in this process")
        return self._feed.judge_now(model)

    def _follow_or_refuse(self, trainer: Any, loader: DataLoader[Any]) -> Any:
        """`_follow`, but with errors raised later, in `on_train_start`.

        While Lightning asks for the loader, it has patched DataLoader, and an error here would
        keep it from undoing that.
        """
        try:
            return self._follow(trainer, loader)
        except Exception as error:
            self._refused = error
            return loader

    def _follow(self, trainer: Any, loader: DataLoader[Any]) -> Feed:
        _check_single(loader)
        per_step = trainer.world_size * trainer.accumulate_grad_batches
        limit = trainer.limit_train_batches
        limit = limit * trainer.world_size if isinstance(limit, int) else limit
        epochs = count_epochs(*self._limits, loader, per_step, limit)
        seed = int(os.environ.get("PL_GLOBAL_SEED", 0))  # of seed_everything
        options = {"epochs": epochs, "seed": seed, **self.options}
        feed = Feed(*denoise(loader, refill=True, carry=beside, **options))
        if self._saved:
            feed.load(self._saved)
        self._feed, self._active = feed, True
        return feed

    def on_train_start(self, trainer: Any, model: Any) -> None:
        if self._refused:
            raise self._refused
        if self._active and trainer.global_step and not self._saved:
            raise InputError(
                f"training continues after step {trainer.global_step}, but the checkpoint was saved"
                " without Denoise: start over, or remove Denoise"
            )
        self._finish(trainer.current_epoch, model)  # a checkpoint may lack an epoch's end
        whole = self._feed and self._active and not self._feed.done
        self._first = trainer.global_step if whole else None

    def on_train_batch_end(
        self, trainer: Any, model: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if not self._feed or not self._active:
            return
        self._feed.done = batch_idx + 1
        index = self._feed.indices.pop(batch_idx)
        if isinstance(outputs, Mapping) and "logits" in outputs:
            labels = batch[find_label(batch, self.options.get("label_key"))]
            self._feed.observe(index, outputs["logits"], labels)
        elif outputs or (trainer.is_last_batch and not self._feed.observed):  # else: skipped batch
            raise InputError('training_step must return {"loss": loss, "logits": logits}')
        if trainer.is_last_batch and self._first is not None:
            self._check_steps(trainer.global_step - self._first, batch_idx + 1)
            self._first = None
        if trainer.is_last_batch:  # before validation, which may save a checkpoint
            self._finish(trainer.current_epoch + 1, model)

    def _check_steps(self, steps: int, batches: int) -> None:
        """Warn after the first epoch if max_steps ends training before E could be found.

        With optimisation by hand Lightning counts the steps of every optimizer, and how many a
        batch takes is known only when it has been trained on.
        """
        _, most = self._limits
        expected = self._feed and self._feed.denoiser.rule.epochs
        named = {"epochs", "prune_after"} & self.options.keys()
        if steps <= batches or most < 1 or not expected or named:
            return
        if (epochs := math.ceil(most / steps)) < expected:
            rank_zero_only(warn_user)(
                f"an epoch of {batches} batches takes {steps} steps, so max_steps={most} ends"
                f" training after {epochs} epochs, but Denoise reckons with {expected}: pass"
                f" Denoise(epochs={epochs})"
            )

    def on_train_epoch_end(self, trainer: Any, model: Any) -> None:
        self._finish(trainer.current_epoch + 1, model)  # also an incomplete one

    def _finish(self, epochs: int, model: Any) -> None:
        if self._feed and self._active:
            _tell(self._feed.finish(epochs, model))

    def on_train_end(self, trainer: Any, model: Any) -> None:
        if self._feed and self._active:  # should_stop: by EarlyStopping, not by a limit
            _tell(self._feed.conclude(model, trainer.should_stop))

    def state_dict(self) -> dict[str, Any]:
        return self._feed.save() if self._feed else self._saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self._stage == "fit" or not self._feed:  # testing only restores the weights
            self._saved = state_dict


def _tell(verdict: Verdict | None) -> None:
    if verdict:
        rank_zero_info(verdict.tell_removed())
        for caution in verdict.cautions():
            rank_zero_only(warn_user)(caution)


def _check_single(loader: Any) -> None:
    """Refuse what Lightning takes for several loaders."""
    loaders = getattr(loader, "iterables", loader)  # of a CombinedLoader
    if isinstance(loaders, Mapping | Sequence):
        kind = type(loader).__name__
        raise InputError(
            f"Denoise needs a single train loader, got a {kind} of {len(loaders)}: return one"
            " DataLoader, for instance of a ConcatDataset"
        )


def _find_source(trainer: Any) -> Any:
    """The object that provides the loader; None if Lightning renames it, as it is not public."""
    source = getattr(trainer.fit_loop, "_data_source", None)
    return source if hasattr(type(source), "dataloader") else None
