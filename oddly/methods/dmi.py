"""Determinant-based mutual information (Xu, Cao, Kong, Wang 2019), after plain training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.methods.base import Batch, Context, Method, Stage, StepOutput

FLOOR = 1e-3


def information_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """-log(|det U| + 0.001), U = Yᵀ P (K, K): Y one-hot given labels, P softmax; in fp64.

    U is not divided by the batch size, as in the authors' code: otherwise |det U| < K^-K would
    vanish beside the 0.001.
    """
    p = logits.double().softmax(1)
    given = F.one_hot(labels, p.shape[1]).double()
    return -((given.T @ p).det().abs() + FLOOR).log().to(logits.dtype)


@dataclass
class DMI(Method):
    """L = -log(|det Yᵀ P| + 0.001), starting from a trained network, at a small rate.

    Class-conditional noise of any kind multiplies the determinant by a constant, so the best
    network does not change. Every class must be in every batch. There is no judgement, because the
    method says nothing about single examples.
    """

    rate: float = 1e-5
    """Learning rate of the second stage, as a share of the run's (the authors: 1e-6 after 1e-2)."""
    second_share: float = 1.0
    """Length of the second stage, as a share of the epochs."""

    state: ClassVar[Sequence[str]] = ("informed",)

    def stages(self, epochs: int) -> Sequence[Stage]:
        second = max(1, round(self.second_share * epochs))
        return (Stage("plain", epochs), Stage("information", second, rate=self.rate))

    def setup(self, context: Context) -> None:
        self.informed = False
        if context.batch_size < 2 * context.num_classes:
            raise InputError(
                f"dmi needs every class in every batch, but has {context.num_classes} classes in"
                f" batches of {context.batch_size}; raise --batch-size"
            )

    def begin_stage(self, context: Context) -> None:
        self.informed = context.stage.name == "information"

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        if not self.informed:
            return StepOutput(F.cross_entropy(logits, batch.labels), logits)
        return StepOutput(information_loss(logits.float(), batch.labels), logits)
