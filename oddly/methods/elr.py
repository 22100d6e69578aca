"""Early-learning regularisation (Liu, Niles-Weed, Razavian, Fernandez-Granda 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.methods.base import Batch, Context, Method, StepOutput
from oddly.methods.judgement import Judgement

FLOOR = 1e-4


@dataclass
class ELR(Method):
    """L = CE + λ mean_i log(1 - ⟨t_i, p_i⟩),  t_i ← β t_i + (1 - β) p_i.

    t (N x K floats, 4 N K bytes) remembers the network's early predictions; the second term keeps
    the network close to them. The judgement: argmax t_i is not the label.
    """

    beta: float = 0.7
    """Memory of the targets."""
    weight: float = 3.0
    """λ; the authors' CIFAR-10 value (7 with β = 0.9 on CIFAR-100)."""

    state: ClassVar[Sequence[str]] = ("targets",)

    def __post_init__(self) -> None:
        if not 0 <= self.beta < 1 or self.weight < 0:
            raise InputError("elr's beta must be within 0..1 and its weight at least 0")

    def setup(self, context: Context) -> None:
        self.targets = context.table(context.num_classes)

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        p = logits.float().softmax(1).clamp(FLOOR, 1 - FLOOR)
        share = (p / p.sum(1, keepdim=True)).detach()
        targets = torch.lerp(share, self.targets[batch.index], self.beta)
        self.targets[batch.index] = targets
        agreement = (targets * p).sum(1)
        regulariser = (1 - agreement).clamp_min(FLOOR).log().mean()
        return StepOutput(F.cross_entropy(logits, batch.labels) + self.weight * regulariser, logits)

    def end_epoch(self, context: Context) -> None:
        if context.is_last:
            self.judgement = Judgement.from_table(
                self.targets, context.given_labels, context.epoch, "the targets name another class"
            )
