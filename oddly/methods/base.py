"""The one interface every method implements, and all that it may see."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from oddly.core import KeepSampler, Verdict


@dataclass(frozen=True)
class Batch:
    """What one step trains on. There is no true label in it: no method can peek."""

    index: Tensor  # (B,) int64, place in the training set
    inputs: Tensor  # (B, C, H, W) augmented, normalised
    labels: Tensor  # (B,) int64, given labels
    views: tuple[Tensor, ...] = ()
    """Further independent augmentations of the same examples: `Method.views` - 1 of them."""


@dataclass(frozen=True)
class StepOutput:
    """What a step yields: the scalar to minimise, and the plain logits where there are any."""

    loss: Tensor  # ()
    logits: Tensor | None = None  # (B, K) of batch.inputs; None when inputs were mixed


@dataclass
class Context:
    """The run as a method sees it between steps."""

    model: nn.Module
    sampler: KeepSampler
    num_examples: int
    num_classes: int
    epochs: int
    seed: int
    epoch: int = 0
    """Finished epochs."""


@dataclass
class Method(ABC):
    """A way to train on labels that may be wrong.

    Only `loss` is required. The dataclass's own fields are the method's settings. State per
    example lives in the method, indexed by `batch.index`; the engine owns model and optimiser.
    """

    views: ClassVar[int] = 1
    """How many independent augmentations of a batch the loss needs."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        """The loss of one batch; the engine does backward and step."""

    def setup(self, context: Context) -> None:
        """Called once, before the first epoch."""

    def begin_epoch(self, context: Context) -> None:
        """Called before each epoch."""

    def end_epoch(self, context: Context) -> None:
        """Called after each epoch, with `context.epoch` counting it."""

    @property
    def verdict(self) -> Verdict | None:
        """Which examples this method holds for mislabelled, once it knows."""
        return None

    @property
    def extra_seconds(self) -> float:
        """Time spent so far on finding wrong labels, beyond training itself."""
        return 0.0

    def state_dict(self) -> dict[str, Any]:
        """What must be saved to go on in the middle of a run."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take `state_dict()`'s result back, after `setup`."""
