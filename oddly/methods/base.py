"""The one interface every method implements, and all that it may see."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from oddly.core import KeepSampler, Verdict
from oddly.methods.judgement import Judgement


@dataclass(frozen=True)
class Batch:
    """The input of one step. It contains no true labels, so no method can peek."""

    index: Tensor  # (B,) int64, place in the training set
    inputs: Tensor  # (B, C, H, W) augmented, normalised
    labels: Tensor  # (B,) int64, given labels
    views: tuple[Tensor, ...] = ()
    """`Method.views` - 1 further independent augmentations of the same examples."""


@dataclass(frozen=True)
class StepOutput:
    """The result of a step: the scalar to minimise, and the plain logits if there are any."""

    loss: Tensor  # ()
    logits: Tensor | None = None  # (B, K) of batch.inputs; None when inputs were mixed


@dataclass(frozen=True)
class Stage:
    """A part of a run with its own learning-rate schedule and optimiser."""

    name: str
    epochs: int
    fresh: bool = False
    """Start from new weights instead of those of the previous stage."""
    schedule: str | None = None
    """Learning-rate schedule; None: the run's."""
    rate: float = 1.0
    """Factor on the run's learning rate."""
    extra_outputs: int = 0
    """Outputs of the network beyond the K classes; ignored in tests."""
    passes: float = 1.0
    """Cost of an epoch, in forward and backward passes over the training set."""


class Trusted(Protocol):
    """Examples whose true label is known, held out of the training set."""

    labels: Tensor  # (M,) true labels
    given_labels: Tensor  # (M,) the labels they had in the data

    def __len__(self) -> int: ...

    def draw(self, size: int) -> Batch:
        """Up to `size` examples, augmented; `labels` are the true ones."""

    def features(self, model: nn.Module) -> Tensor:
        """(M, D) inputs of the final layer, un-augmented."""


def _missing(*_: Any) -> Any:
    raise NotImplementedError("only available in a run of the engine")


@dataclass
class Context:
    """What a method can see of the run between steps."""

    model: nn.Module
    sampler: KeepSampler
    num_examples: int
    num_classes: int
    epochs: int
    """Epochs of the whole run, all stages together."""
    seed: int
    epoch: int = 0
    """Number of finished epochs."""
    batch_size: int = 0
    given_labels: Tensor = torch.empty(0, dtype=torch.int64)  # (N,)
    trusted: Trusted | None = None
    """Set if the method declares `needs_trusted_labels`."""
    stage: Stage = Stage("training", 0)
    stage_number: int = 0
    stage_epoch: int = 0
    """Number of finished epochs in this stage."""
    new_model: Callable[[], nn.Module] = _missing
    """Makes another network of the same kind, with different initial weights."""
    probabilities: Callable[..., Tensor] = _missing
    """(model, index=None): (N, K) softmax over the training set, or the examples at `index`,
    un-augmented, in evaluation mode."""
    features: Callable[[nn.Module], Tensor] = _missing
    """(N, D) inputs of the final layer, likewise."""
    table: Callable[[int], Tensor] = _missing
    """Zeros (N, columns) on the training device; raises a clear error if they do not fit."""
    decided: Tensor | None = None
    """bool (N,): labels confirmed by a person."""
    pictures: Tensor | None = None
    """int64 (N,): number of the picture if it occurs with different labels, else -1."""

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def is_last(self) -> bool:
        """Whether every epoch is done."""
        return self.epoch == self.epochs


@dataclass
class Method(ABC):
    """A way to train on labels that may be wrong.

    Only `loss` is required. The fields of the dataclass are the method's settings. Keep state per
    example in the method, indexed by `batch.index`; the engine owns model and optimiser.
    """

    views: ClassVar[int] = 1
    """Number of independent augmentations of a batch that the loss needs."""
    needs_trusted_labels: ClassVar[bool] = False
    """Whether the method needs `Context.trusted`."""
    passes: ClassVar[float] = 1.0
    """Cost of a step in forward and backward passes: views, networks, trusted batches."""
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """The smallest and largest value of each setting; other values raise an error at once."""
    state: ClassVar[Sequence[str]] = ()
    """Attributes to save: tensors, parameters, networks, plain values, judgements."""

    judgement: Judgement | None = field(default=None, init=False, repr=False, compare=False)
    """The result of a method without an ODD verdict; set it when you know it."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        """The loss of one batch; the engine does backward and step."""

    def stages(self, epochs: int) -> Sequence[Stage]:
        """The stages of a run of `epochs`; the engine runs them one after another."""
        return (Stage("training", epochs, passes=self.passes),)

    def setup(self, context: Context) -> None:
        """Called once, before the first stage."""

    def begin_stage(self, context: Context) -> None:
        """Called before the first epoch of a stage, with its network and all examples in place."""

    def begin_epoch(self, context: Context) -> None:
        """Called before each epoch."""

    def end_epoch(self, context: Context) -> None:
        """Called after each epoch; `context.epoch` already counts it."""

    def end_stage(self, context: Context) -> None:
        """Called after a stage's last epoch."""

    def parameter_groups(self) -> Sequence[dict[str, Any]]:
        """Extra parameter groups for the optimiser, in torch's format.

        A group with its own `lr` keeps it; others follow the schedule.
        """
        return ()

    @property
    def verdict(self) -> Verdict | Judgement | None:
        """Which examples this method judges mislabelled, once it knows."""
        return self.judgement

    @property
    def extra_seconds(self) -> float:
        """Time spent so far on finding wrong labels, in addition to training."""
        return 0.0

    def state_dict(self) -> dict[str, Any]:
        """The state needed to continue in the middle of a run."""
        return {name: _pack(getattr(self, name)) for name in self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the result of `state_dict()`, after `setup`."""
        for name in self.state:
            setattr(self, name, _unpack(getattr(self, name), state[name]))


def _pack(value: Any) -> Any:
    """The value in a form that a checkpoint can store."""
    if isinstance(value, nn.Module):
        return value.state_dict()
    if isinstance(value, Judgement):
        return {"judgement": dict(vars(value))}
    return value.detach() if isinstance(value, Tensor) else value


def _unpack(old: Any, saved: Any) -> Any:
    """The saved value, put into what `setup` made if possible."""
    if isinstance(old, nn.Module):
        old.load_state_dict(saved)
        return old
    if isinstance(saved, Mapping) and "judgement" in saved:
        return Judgement(**saved["judgement"])
    if isinstance(old, Tensor) and old.shape == saved.shape:
        with torch.no_grad():
            return old.copy_(saved)  # in place: the optimiser may hold it
    return saved.clone() if isinstance(saved, Tensor) else saved
