"""Hugging Face: a `Trainer` that finds wrong labels while it trains."""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn
from torch.utils.data import DataLoader

from oddly.core import Verdict, denoise
from oddly.core.indexed import LABEL_KEYS, find_label
from oddly.errors import InputError
from oddly.integrations.feed import Feed, check_adapted, count_epochs, warn_user

try:
    from transformers import Trainer, TrainerCallback
    from transformers.trainer_utils import get_last_checkpoint
except ImportError:
    raise InputError('transformers is not installed: pip install "oddly[transformers]"') from None

INDEX = "_oddly_index"  # the entry of a batch with its indices; removed when its step begins


class DenoisingTrainer(Trainer):
    """A `Trainer` for classifiers that finds wrong labels and drops them after E; see `verdict`.

    With your own Trainer: `class Mine(DenoisingTrainer, YourTrainer)`. Epochs keep their
    length. `denoise` takes options of `oddly.denoise` and `oddly.Denoiser`.
    """

    def __init__(self, *args: Any, denoise: Mapping[str, Any] | None = None, **more: Any) -> None:
        check_adapted(denoise or {})
        super().__init__(*args, **more)
        # Possible names of the label; a collator may rename it between items and batches.
        self._oddly_labels = (*self.label_names, *LABEL_KEYS)
        names: dict[str, Any] = {"label_key": self._oddly_labels}
        self._oddly_options = {**names, "seed": self.args.seed, **(denoise or {})}
        if isinstance(key := self._oddly_options["label_key"], str):
            self._oddly_labels = (key, *self._oddly_labels)
        self._oddly_feed: Feed | None = None
        self._oddly_index: Tensor | None = None
        self.add_callback(_Epochs(self))

    @property
    def verdict(self) -> Verdict | None:
        """None before E."""
        return self._oddly_feed.denoiser.verdict if self._oddly_feed else None

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **more: Any) -> Any:
        if resume_from_checkpoint is True:
            resume_from_checkpoint = get_last_checkpoint(self.args.output_dir) or True
        self._oddly_feed, self._oddly_index = None, None
        self._oddly_checkpoint = resume_from_checkpoint
        try:
            return super().train(resume_from_checkpoint, *args, **more)
        except KeyboardInterrupt:
            if self._oddly_feed and self.is_world_process_zero():
                self._oddly_feed.tell_interrupted("trainer.judge_now()", "KeyboardInterrupt")
            raise

    def judge_now(self) -> Verdict:
        """The verdict; if training was interrupted before E, from what was seen until then."""
        if not self._oddly_feed:
            raise InputError("nothing to judge: train() was not called")
        return self._oddly_feed.judge_now(cast(nn.Module, self.model))

    def get_train_dataloader(self) -> DataLoader[Any]:
        loader, args = super().get_train_dataloader(), self.args
        if not self.is_in_train:
            return loader
        epochs = math.ceil(args.num_train_epochs) if args.max_steps < 1 else None  # not both
        epochs = count_epochs(epochs, args.max_steps, loader, args.gradient_accumulation_steps)
        classes = getattr(getattr(self.model, "config", None), "num_labels", None)
        options = {"epochs": epochs, "num_classes": classes, **self._oddly_options}
        if not options["num_classes"]:
            raise InputError("the model has no config.num_labels: pass denoise={'num_classes': …}")
        self._oddly_feed = Feed(*denoise(loader, refill=True, carry=_enter, **options))
        if self._oddly_checkpoint:
            self._oddly_feed.read(Path(self._oddly_checkpoint), args.process_index)
        return self._oddly_feed.loader

    def training_step(self, model: nn.Module, inputs: Any, *args: Any, **more: Any) -> Tensor:
        self._oddly_index = inputs.pop(INDEX, None)
        return super().training_step(model, inputs, *args, **more)

    def compute_loss(
        self, model: nn.Module, inputs: Any, return_outputs: bool = False, *args: Any, **more: Any
    ) -> Any:
        index = inputs.pop(INDEX, self._oddly_index)  # still here if `training_step` is overridden
        self._oddly_index = None
        if index is None or not self._oddly_feed:  # evaluation
            return super().compute_loss(model, inputs, return_outputs, *args, **more)
        labels = inputs[find_label(inputs, self._oddly_labels)]
        found = super().compute_loss(model, inputs, True, *args, **more)
        if not isinstance(found, tuple) or len(found) != 2:
            raise InputError("compute_loss must return (loss, outputs) with return_outputs=True")
        loss, outputs = found
        logits = outputs["logits"] if isinstance(outputs, Mapping) else outputs[1]
        self._oddly_feed.observe(index, logits, labels)
        return (loss, outputs) if return_outputs else loss


def _enter(batch: Any, index: Tensor) -> Any:
    if not isinstance(batch, MutableMapping):
        raise InputError(f"the data_collator must return a mapping, got {type(batch).__name__}")
    batch[INDEX] = index
    return batch


class _Epochs(TrainerCallback):
    """Follows the ends of epochs, and checkpoints."""

    def __init__(self, trainer: DenoisingTrainer) -> None:
        self.trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not self.trainer._oddly_feed:
            raise self._unreached("get_train_dataloader")

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if (feed := self.trainer._oddly_feed) and not feed.observed:
            raise self._unreached("compute_loss")
        self._finish(math.floor(state.epoch))  # before a checkpoint of this step

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._finish(math.ceil(state.epoch))  # also an incomplete one

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if feed := self.trainer._oddly_feed:
            folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
            feed.write(folder, args.process_index)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if feed := self.trainer._oddly_feed:
            stopped = state.global_step < state.max_steps  # for example by EarlyStoppingCallback
            verdict = feed.conclude(cast(nn.Module, self.trainer.model), stopped)
            self._caution(verdict)  # no log entry: the loggers are closed by now

    def _finish(self, epochs: int) -> None:
        if feed := self.trainer._oddly_feed:
            self._tell(feed.finish(epochs, cast(nn.Module, self.trainer.model)))

    def _tell(self, verdict: Verdict | None) -> None:
        if verdict:
            self.trainer.log({"removed": verdict.num_removed, "examples": len(verdict.keep)})
        self._caution(verdict)

    def _caution(self, verdict: Verdict | None) -> None:
        for caution in verdict.cautions() if verdict else ():
            if self.trainer.is_world_process_zero():
                warn_user(caution)

    def _unreached(self, method: str) -> InputError:
        kind = type(self.trainer).__name__
        return InputError(
            f"{method} of {kind} does not call DenoisingTrainer's: derive {kind} from Trainer,"
            f" and use class Denoised(DenoisingTrainer, {kind})"
        )
