"""Lightning: a callback, and a `training_step` that also returns its logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.utils.data import DataLoader

from oddly.core import Verdict, denoise
from oddly.core.indexed import find_label
from oddly.core.loader import take_index
from oddly.errors import InputError
from oddly.integrations.feed import Feed, count_epochs, warn_without

try:
    from lightning.pytorch import Callback
    from lightning.pytorch.utilities import rank_zero_info
except ImportError:
    raise InputError('Lightning is not installed: pip install "oddly[lightning]"') from None


class Denoise(Callback):
    """Finds wrong labels while Lightning trains, and leaves them out after E.

        trainer = Trainer(max_epochs=40, callbacks=[Denoise(num_classes=10)])

    and in your `training_step` `return {"loss": loss, "logits": logits}`; batches stay as they are.
    An epoch keeps its length. `options` are those of `oddly.denoise` and `oddly.Denoiser`.
    """

    def __init__(self, num_classes: int, **options: Any) -> None:
        self.options = {"num_classes": num_classes, **options}
        self._feed: Feed | None = None
        self._saved: dict[str, Any]

    @property
    def verdict(self) -> Verdict | None:
        """None before E."""
        return self._feed.denoiser.verdict if self._feed else None

    def setup(self, trainer: Any, model: Any, stage: str) -> None:
        self._stage, self._saved = stage, {}
        self._feed = None if stage == "fit" else self._feed
        if stage != "fit" or trainer.fast_dev_run or trainer.overfit_batches:
            return  # a few batches, to debug, are no training to judge labels by
        if trainer.reload_dataloaders_every_n_epochs:
            raise InputError("Denoise follows one loader: reload_dataloaders_every_n_epochs=0")
        source = trainer.fit_loop._data_source  # Lightning offers no public way in
        request = type(source).dataloader
        source.dataloader = lambda: self._follow(trainer, request(source))

    def teardown(self, trainer: Any, model: Any, stage: str) -> None:
        vars(trainer.fit_loop._data_source).pop("dataloader", None)

    def _follow(self, trainer: Any, loader: DataLoader[Any]) -> Feed:
        per_step = trainer.world_size * trainer.accumulate_grad_batches
        epochs = count_epochs(trainer.max_epochs, trainer.max_steps, loader, per_step)
        self._feed = Feed(*denoise(loader, refill=True, **{"epochs": epochs, **self.options}))
        self.load_state_dict(self._saved)
        return self._feed

    def on_train_start(self, trainer: Any, model: Any) -> None:
        self._finish(trainer.current_epoch, model)  # a checkpoint may lack an epoch's end

    def on_train_batch_start(self, trainer: Any, model: Any, batch: Any, batch_idx: int) -> None:
        if self._feed:
            self._index = take_index(batch)

    def on_train_batch_end(
        self, trainer: Any, model: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if not self._feed:
            return
        self._feed.done = batch_idx + 1
        if outputs:  # else the step was skipped
            if not isinstance(outputs, Mapping) or "logits" not in outputs:
                raise InputError('training_step must return {"loss": loss, "logits": logits}')
            labels = batch[find_label(batch, self.options.get("label_key"))]
            self._feed.denoiser.observe(self._index, outputs["logits"], labels)
        if trainer.is_last_batch:  # before validation, which may save a checkpoint
            self._finish(trainer.current_epoch + 1, model)

    def on_train_epoch_end(self, trainer: Any, model: Any) -> None:
        self._finish(trainer.current_epoch + 1, model)  # one broken off, too

    def _finish(self, epochs: int, model: Any) -> None:
        if self._feed and (verdict := self._feed.finish(epochs, model)):
            rank_zero_info(str(verdict))

    def on_train_end(self, trainer: Any, model: Any) -> None:
        warn_without(self._feed)

    def state_dict(self) -> dict[str, Any]:
        return self._feed.save() if self._feed else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._saved = state_dict if self._stage == "fit" else {}  # a test needs the weights alone
        if self._feed and self._saved:
            self._feed.load(self._saved)
