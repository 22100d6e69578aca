"""Hugging Face: a `Trainer` that finds wrong labels while it trains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from torch import nn
from torch.utils.data import DataLoader

from oddly.core import Verdict, denoise
from oddly.core.loader import take_index
from oddly.errors import InputError
from oddly.integrations.feed import Feed, count_epochs, warn_without

try:
    from transformers import Trainer, TrainerCallback
    from transformers.trainer_utils import get_last_checkpoint
except ImportError:
    raise InputError('transformers is not installed: pip install "oddly[transformers]"') from None


class DenoisingTrainer(Trainer):
    """A `Trainer` of classifiers that leaves wrong labels out after E; then see `verdict`.

    For a Trainer of your own: `class Mine(DenoisingTrainer, YourTrainer)`. An epoch keeps its
    length. `denoise` holds options of `oddly.denoise` and `oddly.Denoiser`, if you need any.
    """

    def __init__(self, *args: Any, denoise: Mapping[str, Any] | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self._options = {"seed": self.args.seed, **(denoise or {})}
        self.feed: Feed | None = None
        self.add_callback(_Epochs(self))

    @property
    def verdict(self) -> Verdict | None:
        """None before E."""
        return self.feed.denoiser.verdict if self.feed else None

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **more: Any) -> Any:
        if resume_from_checkpoint is True:
            resume_from_checkpoint = get_last_checkpoint(self.args.output_dir) or True
        self.feed, self._resume_from = None, resume_from_checkpoint
        return super().train(resume_from_checkpoint, *args, **more)

    def get_train_dataloader(self) -> DataLoader[Any]:
        loader, args = super().get_train_dataloader(), self.args
        if not self.is_in_train:
            return loader
        epochs = math.ceil(args.num_train_epochs) if args.max_steps < 1 else None  # not both
        epochs = count_epochs(epochs, args.max_steps, loader, args.gradient_accumulation_steps)
        classes = getattr(getattr(self.model, "config", None), "num_labels", None)
        options = {"epochs": epochs, "num_classes": classes, **self._options}
        if not options["num_classes"]:
            raise InputError("the model has no config.num_labels: pass denoise={'num_classes': …}")
        self.feed = Feed(*denoise(loader, refill=True, **options))
        if self._resume_from:
            self.feed.read(Path(self._resume_from), args.process_index)
        return self.feed.loader

    def compute_loss(
        self, model: nn.Module, inputs: Any, return_outputs: bool = False, *args: Any, **more: Any
    ) -> Any:
        if self.feed is None or "index" not in inputs:  # evaluation
            return super().compute_loss(model, inputs, return_outputs, *args, **more)
        index, labels = take_index(inputs), inputs[self.label_names[0]]
        loss, outputs = super().compute_loss(model, inputs, True, *args, **more)
        logits = outputs["logits"] if isinstance(outputs, Mapping) else outputs[1]
        self.feed.denoiser.observe(index, logits, labels)
        return (loss, outputs) if return_outputs else loss

    def finish(self, epochs: int) -> None:
        """Close what is not closed yet of these first epochs."""
        if self.feed and (verdict := self.feed.finish(epochs, cast(nn.Module, self.model))):
            self.log({"removed": verdict.num_removed, "examples": len(verdict.keep)})


class _Epochs(TrainerCallback):
    """Says when an epoch is over and when a checkpoint is made."""

    def __init__(self, trainer: DenoisingTrainer) -> None:
        self.trainer = trainer

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.trainer.finish(math.floor(state.epoch))  # before a checkpoint of this step

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.trainer.finish(math.ceil(state.epoch))  # one broken off, too

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.trainer.feed:
            folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
            self.trainer.feed.write(folder, args.process_index)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        warn_without(self.trainer.feed)
