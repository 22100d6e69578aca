"""Sparse over-parameterisation (Liu, Zhu, Qu, You 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional as F

from oddly.methods.base import Batch, Context, Method, StepOutput
from oddly.methods.judgement import Judgement

SPREAD = 1e-8  # standard deviation of the initial values
FLOOR = 1e-4
EPOCHS, BATCH = 300, 128  # the authors' runs


@dataclass
class SOP(Method):
    """-log q_y + mean_i ‖onehot(argmax z) + U - V - e_y‖²,  q = normalise(p + U - stopgrad(V)).

    U = clamp(u_i², 0, 1) e_y and V = clamp(v_i², 0, 1) (1 - e_y) absorb the error in a label:
    N (K + 1) floats, trained by plain SGD with their own rates. Departure: u and v start at 1e-8
    and grow by a factor in every epoch, so the rates are scaled by epochs and batch size, for short
    runs to get as far. The judgement is ours: u² ≥ ½.
    """

    rate_u: float = 1.0
    """Learning rate of u in 300 epochs of batch 128 (the authors: 1 or 0.1 on CIFAR-100)."""
    rate_v: float = 10.0
    """Learning rate of v likewise (the authors: 10 or 100 on CIFAR-100)."""

    state: ClassVar[Sequence[str]] = ("u", "v")

    def setup(self, context: Context) -> None:
        self.speed = (EPOCHS / context.epochs) * (context.batch_size / BATCH)
        generator = torch.Generator().manual_seed(context.seed)
        self.u, self.v = (
            nn.Parameter(
                context.table(columns).copy_(
                    SPREAD * torch.randn(context.num_examples, columns, generator=generator)
                )
            )
            for columns in (1, context.num_classes)
        )

    def parameter_groups(self) -> Sequence[dict[str, Any]]:
        plain = {"momentum": 0.0, "nesterov": False, "weight_decay": 0.0}
        return (
            {"params": [self.u], "lr": self.speed * self.rate_u, **plain},
            {"params": [self.v], "lr": self.speed * self.rate_v, **plain},
        )

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        p = logits.float().softmax(1)
        given = F.one_hot(batch.labels, p.shape[1]).float()
        u = self.u[batch.index].square().clamp(0, 1) * given
        v = self.v[batch.index].square().clamp(0, 1) * (1 - given)
        q = F.normalize((p + u - v.detach()).clamp_min(FLOOR), p=1, dim=1)
        fit = -(given * q.log()).sum(1).mean()
        predicted = F.one_hot(p.argmax(1), p.shape[1]).float()
        return StepOutput(fit + (predicted + u - v - given).square().sum(1).mean(), logits)

    def end_epoch(self, context: Context) -> None:
        if context.is_last:
            self.judgement = Judgement.by_threshold(
                self.u.detach().square().squeeze(1), 0.5, context.epoch, "u² ≥ 0.5"
            )
