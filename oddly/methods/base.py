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


@dataclass(frozen=True)
class Stage:
    """A part of a run with a learning-rate schedule and an optimiser of its own."""

    name: str
    epochs: int
    fresh: bool = False
    """Begin with new weights rather than with those of the stage before."""
    schedule: str | None = None
    """A learning-rate schedule; None: the run's."""
    rate: float = 1.0
    """Times the run's learning rate."""
    extra_outputs: int = 0
    """Outputs of the network beyond the K classes; they are left out wherever it is tested."""
    passes: float = 1.0
    """What an epoch costs, in forward and backward passes over the training set."""


class Trusted(Protocol):
    """Examples whose true label is known, held out of the training set."""

    labels: Tensor  # (M,) true labels
    given_labels: Tensor  # (M,) the labels they had in the data

    def __len__(self) -> int: ...

    def draw(self, size: int) -> Batch:
        """`size` of them (fewer where there are fewer), augmented; `labels` are the true ones."""

    def features(self, model: nn.Module) -> Tensor:
        """(M, D) what the final layer gets of each, un-augmented."""


def _missing(*_: Any) -> Any:
    raise NotImplementedError("only available in a run of the engine")


@dataclass
class Context:
    """The run as a method sees it between steps."""

    model: nn.Module
    sampler: KeepSampler
    num_examples: int
    num_classes: int
    epochs: int
    """Of the whole run, all stages together."""
    seed: int
    epoch: int = 0
    """Finished epochs."""
    batch_size: int = 0
    given_labels: Tensor = torch.empty(0, dtype=torch.int64)  # (N,)
    trusted: Trusted | None = None
    """Where the method declares `needs_trusted_labels`."""
    stage: Stage = Stage("training", 0)
    stage_number: int = 0
    stage_epoch: int = 0
    """Finished epochs of this stage."""
    new_model: Callable[[], nn.Module] = _missing
    """Another network of the same kind, with other first weights."""
    probabilities: Callable[..., Tensor] = _missing
    """(model, index=None): (N, K) softmax over the training set, or the examples at `index`,
    un-augmented, in evaluation mode."""
    features: Callable[[nn.Module], Tensor] = _missing
    """(N, D) what the final layer gets, likewise."""
    table: Callable[[int], Tensor] = _missing
    """Zeros (N, columns) on the training device; one clear line where they do not fit."""
    decided: Tensor | None = None
    """bool (N,): labels that a person vouches for."""
    pictures: Tensor | None = None
    """int64 (N,): which picture, where it occurs under different labels; -1: any other."""

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

    Only `loss` is required. The dataclass's own fields are the method's settings. State per
    example lives in the method, indexed by `batch.index`; the engine owns model and optimiser.
    """

    views: ClassVar[int] = 1
    """How many independent augmentations of a batch the loss needs."""
    needs_trusted_labels: ClassVar[bool] = False
    """Whether `Context.trusted` must be there."""
    passes: ClassVar[float] = 1.0
    """What a step costs in forward and backward passes: views, networks, trusted batches."""
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Settings with their smallest and largest value; whatever lies outside is refused at once."""
    state: ClassVar[Sequence[str]] = ()
    """Attributes to save: tensors, parameters, networks, plain values, judgements."""

    judgement: Judgement | None = field(default=None, init=False, repr=False, compare=False)
    """What a method without a verdict of ODD's kind has found; set when it is known."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        """The loss of one batch; the engine does backward and step."""

    def stages(self, epochs: int) -> Sequence[Stage]:
        """The parts of a run for which the user asked `epochs`; the engine joins them."""
        return (Stage("training", epochs, passes=self.passes),)

    def setup(self, context: Context) -> None:
        """Called once, before the first stage."""

    def begin_stage(self, context: Context) -> None:
        """Called before a stage's first epoch, with its network in place and all examples kept."""

    def begin_epoch(self, context: Context) -> None:
        """Called before each epoch."""

    def end_epoch(self, context: Context) -> None:
        """Called after each epoch, with `context.epoch` counting it."""

    def end_stage(self, context: Context) -> None:
        """Called after a stage's last epoch."""

    def parameter_groups(self) -> Sequence[dict[str, Any]]:
        """Further parameters for the optimiser, as torch takes them.

        A group with an `lr` of its own keeps it; without, it follows the schedule.
        """
        return ()

    @property
    def verdict(self) -> Verdict | Judgement | None:
        """Which examples this method holds for mislabelled, once it knows."""
        return self.judgement

    @property
    def extra_seconds(self) -> float:
        """Time spent so far on finding wrong labels, beyond training itself."""
        return 0.0

    def state_dict(self) -> dict[str, Any]:
        """What must be saved to go on in the middle of a run."""
        return {name: _pack(getattr(self, name)) for name in self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take `state_dict()`'s result back, after `setup`."""
        for name in self.state:
            setattr(self, name, _unpack(getattr(self, name), state[name]))


def _pack(value: Any) -> Any:
    """As a checkpoint can hold it."""
    if isinstance(value, nn.Module):
        return value.state_dict()
    if isinstance(value, Judgement):
        return {"judgement": dict(vars(value))}
    return value.detach() if isinstance(value, Tensor) else value


def _unpack(old: Any, saved: Any) -> Any:
    """The saved value, in the place of what `setup` had made."""
    if isinstance(old, nn.Module):
        old.load_state_dict(saved)
        return old
    if isinstance(saved, Mapping) and "judgement" in saved:
        return Judgement(**saved["judgement"])
    if isinstance(old, Tensor) and old.shape == saved.shape:
        with torch.no_grad():
            return old.copy_(saved)  # in place: the optimiser may hold it
    return saved.clone() if isinstance(saved, Tensor) else saved
