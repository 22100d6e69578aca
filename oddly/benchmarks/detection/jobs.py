"""The kinds of training: a job is one network, and the arrays about the examples it leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from oddly.benchmarks.detection.cases import Case
from oddly.data.base import LabelledData
from oddly.engine.build import TEST_BATCH, Parts
from oddly.engine.config import RunConfig
from oddly.engine.evaluate import predict, score_test_set
from oddly.engine.feed import make_feed
from oddly.engine.outcome import describe_verdict
from oddly.engine.sweep import predict_probabilities
from oddly.errors import InputError
from oddly.methods import PRESETS, Batch, Context, StepOutput
from oddly.methods.aum import margins
from oddly.methods.erm import ERM

Arrays = dict[str, NDArray[Any]]
FOLD_SEED = 0xF01D
PLANT_SEED = 0xA0


@dataclass(frozen=True)
class Job(ABC):
    """One training on one case."""

    case: Case
    seed: int = 0
    part: int = 0
    """The number among several similar jobs, such as folds."""
    kind: ClassVar[str]
    changes: ClassVar[Mapping[str, Any]] = {}
    """What differs from the case's recipe, as fields of a RunConfig."""
    share: ClassVar[float] = 1.0
    """Approximate cost relative to plain training; only used to see what fits into the time."""

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.part}" if self.part else self.kind

    def config(self, data: LabelledData, device: str = "auto") -> RunConfig:
        """The run's config, without noise, since the data have it already."""
        case = self.case
        config = RunConfig(
            case.data,
            method="erm",
            warmup=case.warmup,
            device=device,
            init_seed=self.seed,
            order_seed=self.seed,
        )
        config = config.with_recipe(case.recipe or data.recipe)
        return self.adapt(config, len(data.class_names))

    def adapt(self, config: RunConfig, num_classes: int) -> RunConfig:
        return replace(config, **self.changes)

    def select(self, data: LabelledData) -> LabelledData:
        """The part of the data, and the labels, that this job trains on."""
        return data

    def install(self, parts: Parts) -> None:  # noqa: B027 - nothing to change for most
        """Change what the engine built, before the first epoch."""

    @abstractmethod
    def collect(self, parts: Parts, data: LabelledData) -> tuple[Arrays, int]:
        """The arrays to store after training, and the number of forward passes they took."""

    def describe(self, parts: Parts) -> dict[str, Any]:
        """Other results, as plain values."""
        return {}


@dataclass(frozen=True)
class Denoise(Job):
    """Our default: method `odd` as it comes."""

    kind = "odd"
    changes = {"method": "odd"}

    def collect(self, parts: Parts, data: LabelledData) -> tuple[Arrays, int]:
        verdict = parts.method.verdict
        if verdict is None:
            raise InputError(f"{self.name} gave no verdict on {self.case.name}")
        # The same sweep as at the end of every run.
        found = predict(parts.model, parts.train_feed, parts.bf16)
        return {
            "keep": verdict.keep.numpy(),
            "scores": verdict.scores.float().numpy(),
            "predicted": found.labels.to(torch.int16).numpy(),
            "confidences": found.confidences.float().numpy(),
        }, 0

    def describe(self, parts: Parts) -> dict[str, Any]:
        found = describe_verdict(parts.method.verdict, parts.data.class_names)
        return {**found, **score_test_set(parts), "denoise_seconds": parts.method.extra_seconds}


@dataclass(frozen=True)
class DenoisePaper(Denoise):
    """The paper's rule: `--preset paper`."""

    kind = "odd_paper"

    def adapt(self, config: RunConfig, num_classes: int) -> RunConfig:
        return replace(config, method="odd", settings=PRESETS["paper"])


@dataclass(frozen=True)
class Plain(Job):
    """Plain training to the end: what everything is compared with. It removes nothing."""

    kind = "erm"

    def collect(self, parts: Parts, data: LabelledData) -> tuple[Arrays, int]:
        losses = predict(parts.model, parts.train_feed, parts.bf16).losses
        return {"losses": losses.numpy()}, 0  # the sweep is for our table, not part of the method

    def describe(self, parts: Parts) -> dict[str, Any]:
        return dict(score_test_set(parts))


@dataclass(frozen=True)
class WarmUp(Plain):
    """DivideMix's warm-up: batch 64 at a constant learning rate of 0.02, then one sweep.

    10 epochs, or 30 with 100 classes or more, as the authors do. Their penalty for asymmetric noise
    is left out, since one would have to know the noise. The rate is 1/5 of the recipe's.
    """

    kind = "warmup"
    share = 1 / 3

    def adapt(self, config: RunConfig, num_classes: int) -> RunConfig:
        assert config.learning_rate and config.epochs
        return replace(
            config,
            epochs=min(config.epochs, 30 if num_classes >= 100 else 10),
            batch_size=64,
            learning_rate=config.learning_rate / 5,
            schedule="constant",
        )

    def collect(self, parts: Parts, data: LabelledData) -> tuple[Arrays, int]:
        arrays, _ = super().collect(parts, data)
        return arrays, len(data.train)

    def describe(self, parts: Parts) -> dict[str, Any]:
        return {}


@dataclass
class MeanMargin(ERM):
    """Plain training that averages z_y - max_{k≠y} z_k over its forward passes.

    The first epoch is skipped, as in the authors' code, unless it is the only one.
    """

    num_examples: int = 0
    total: Tensor = field(default_factory=lambda: torch.zeros(0))
    epochs: int = 0

    def setup(self, context: Context) -> None:
        self.num_examples = context.num_examples

    def begin_epoch(self, context: Context) -> None:
        if context.epoch <= 1:
            self.total, self.epochs = torch.zeros(self.num_examples), 0
        self.epochs += 1

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        output = super().loss(model, batch)
        assert output.logits is not None
        found = margins(output.logits.detach().float(), batch.labels)
        self.total = self.total.to(found.device)
        self.total[batch.index] += found
        return output

    def state_dict(self) -> dict[str, Any]:
        return {"total": self.total, "epochs": self.epochs}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.total, self.epochs = state["total"].clone(), state["epochs"]


@dataclass(frozen=True)
class Margins(Job):
    """One of AUM's two runs, each with N // K different threshold examples in an extra class.

    Batch 64, weight decay 1e-4, a constant learning rate, half the epochs: the authors train
    150 of 300, up to the first drop.
    """

    kind = "margins"
    share = 1 / 2

    def adapt(self, config: RunConfig, num_classes: int) -> RunConfig:
        assert config.epochs
        return replace(
            config,
            epochs=-(-config.epochs // 2),
            batch_size=64,
            weight_decay=1e-4,
            schedule="constant",
        )

    def planted(self, data: LabelledData) -> Tensor:
        """The indices of this run's threshold examples."""
        number = len(data.train) // len(data.class_names)
        generator = torch.Generator().manual_seed(1_000 * self.seed + PLANT_SEED)
        order = torch.randperm(len(data.train), generator=generator)
        return order[(self.part - 1) * number : self.part * number]

    def select(self, data: LabelledData) -> LabelledData:
        labels = data.train.labels.clone()
        labels[self.planted(data)] = len(data.class_names)
        data = replace(data, class_names=[*data.class_names, "(threshold)"])
        return data.with_given_labels(labels)

    def install(self, parts: Parts) -> None:
        parts.method = MeanMargin()
        parts.method.setup(parts.context)

    def collect(self, parts: Parts, data: LabelledData) -> tuple[Arrays, int]:
        method = parts.method
        assert isinstance(method, MeanMargin)
        mask = np.zeros(len(data.train), np.bool_)
        mask[self.planted(data).numpy()] = True
        return {"margins": (method.total / method.epochs).cpu().numpy(), "planted": mask}, 0


FOLDS = 5


@dataclass(frozen=True)
class Fold(Job):
    """Probabilities for a fifth of the examples, which this network has not seen.

    It trains a third of the epochs with a full cosine schedule, and so ends before it memorises.
    """

    kind = "fold"
    share = 4 / 15

    def adapt(self, config: RunConfig, num_classes: int) -> RunConfig:
        assert config.epochs
        return replace(config, epochs=-(-config.epochs // 3))

    def held_out(self, data: LabelledData) -> Tensor:
        """The indices of this fold; each class is spread evenly over the folds."""
        generator = torch.Generator().manual_seed(1_000 * self.seed + FOLD_SEED)
        order = torch.randperm(len(data.train), generator=generator)
        by_class = order[data.train.labels[order].argsort(stable=True)]
        return by_class[self.part - 1 :: FOLDS].sort().values

    def select(self, data: LabelledData) -> LabelledData:
        return data.without(self.held_out(data))

    def collect(self, parts: Parts, data: LabelledData) -> tuple[Arrays, int]:
        index = self.held_out(data)
        split = data.train.take(index)
        feed = make_feed(data, split, TEST_BATCH, parts.device, 0)
        classes = len(data.class_names)
        found = predict_probabilities(parts.model, feed=feed, num_classes=classes, bf16=parts.bf16)
        arrays = {"index": index.int().numpy(), "probabilities": found.half().cpu().numpy()}
        return arrays, len(index)
