"""Lightning: a callback, and a `training_step` that also returns its logits."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor
from torch.utils.data import DataLoader

from oddly.core import Denoiser, Verdict, denoise
from oddly.core.indexed import find_label
from oddly.core.loader import take_index
from oddly.errors import InputError

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.utilities import rank_zero_info
except ImportError:
    raise InputError('Lightning is not installed: pip install "oddly[lightning]"') from None


class Denoise(Callback):
    """Finds wrong labels while Lightning trains, and leaves them out after E.

        trainer = Trainer(max_epochs=40, callbacks=[Denoise(num_classes=10)])

    and `return {"loss": loss, "logits": logits}` at the end of your `training_step`, whose batches
    stay as they are. An epoch keeps its number of batches, so that schedules and progress bars
    stay right. `options` are those of `oddly.denoise` and `oddly.Denoiser`.
    """

    def __init__(self, num_classes: int, epochs: int | None = None, **options: Any) -> None:
        self.num_classes, self.epochs, self.options = num_classes, epochs, options
        self.denoiser: Denoiser | None = None
        self._saved: dict[str, Any] = {}

    @property
    def verdict(self) -> Verdict | None:
        """None before E."""
        return self.denoiser.verdict if self.denoiser else None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._stage = stage
        # Debugging with a few batches is no training to judge labels by.
        if stage != "fit" or trainer.fast_dev_run or trainer.overfit_batches:
            return
        if trainer.reload_dataloaders_every_n_epochs:
            raise InputError("Denoise follows one loader: reload_dataloaders_every_n_epochs=0")
        self.denoiser, self._saved = None, {}
        source: Any = trainer.fit_loop._data_source  # Lightning offers no public way in
        request = type(source).dataloader
        source.dataloader = lambda: self._follow(trainer, request(source))

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        vars(trainer.fit_loop._data_source).pop("dataloader", None)

    def _follow(self, trainer: Trainer, loader: DataLoader[Any]) -> _Feed:
        epochs = self.epochs or _count_epochs(trainer, loader)
        options = {"refill": True, **self.options}
        self._feed = _Feed(*denoise(loader, self.num_classes, epochs, **options))
        self.denoiser = self._feed.denoiser
        self._load()
        return self._feed

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._finish(trainer.current_epoch, pl_module)  # one that a checkpoint stopped short of

    def on_train_batch_start(self, _: Any, __: Any, batch: Any, batch_idx: int) -> None:
        if self.denoiser:
            self._index: Tensor = take_index(batch)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.denoiser is None:
            return
        self._feed.done = batch_idx + 1
        if outputs:  # else the step was skipped
            if not isinstance(outputs, Mapping) or "logits" not in outputs:
                raise InputError('training_step must return {"loss": loss, "logits": logits}')
            labels = batch[find_label(batch, self.options.get("label_key"))]
            self.denoiser.observe(self._index, outputs["logits"], labels)
        if trainer.is_last_batch:  # before validation, which may save a checkpoint
            self._finish(trainer.current_epoch + 1, pl_module)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._finish(trainer.current_epoch + 1, pl_module)  # also one broken off

    def _finish(self, epoch: int, model: LightningModule) -> None:
        while self.denoiser and self.denoiser.epoch < epoch:
            self._feed.done = 0
            if verdict := self.denoiser.end_epoch(model):
                rank_zero_info(str(verdict))

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self.denoiser and self.verdict is None:
            warnings.warn("training ended before the verdict: let it run its epochs", stacklevel=2)

    def state_dict(self) -> dict[str, Any]:
        if self.denoiser is None:
            return {}
        return {"denoiser": self.denoiser.state_dict(), "done": self._feed.done}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self._stage == "fit":  # a test with a checkpoint's weights leaves the verdict alone
            self._saved = state_dict
            self._load()

    def _load(self) -> None:
        if self.denoiser and self._saved:
            self.denoiser.load_state_dict(self._saved["denoiser"])
            self._feed.done = self._saved["done"]
            self._saved = {}


class _Feed:
    """What Lightning draws from: no DataLoader, whose sampler it would replace or set anew."""

    def __init__(self, loader: DataLoader[Any], denoiser: Denoiser) -> None:
        self.loader, self.denoiser = loader, denoiser
        self._length = len(loader)
        self.done = 0  # batches of this epoch that were trained on

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:  # asked for early, it begins with the epoch's first batch
        start = self.done * (self.loader.batch_size or 1)
        self.denoiser.sampler.set_epoch(self.denoiser.epoch, start)
        yield from self.loader

    # To have these tells Lightning that an epoch broken off goes on where it was.
    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The callback's state has it all."""


def _count_epochs(trainer: Trainer, loader: DataLoader[Any]) -> int:
    if trainer.max_epochs and trainer.max_epochs > 0:
        return trainer.max_epochs
    if trainer.max_steps < 1:
        raise InputError(
            "the number of epochs is unknown: Trainer(max_epochs=…) or Denoise(epochs=…)"
        )
    batches = -(-len(loader) // trainer.world_size)
    return -(-trainer.max_steps * trainer.accumulate_grad_batches // batches)
