"""A network whose logits are its inputs, and a run around it small enough to work out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from oddly.core import KeepSampler
from oddly.methods import Batch, Context, Method, Stage, StepOutput


class Same(nn.Module):
    """logits = inputs + shift, with the shift at 0."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(num_classes))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs + self.shift


def make_context(
    labels: Sequence[int], num_classes: int, epochs: int = 10, probabilities: Tensor | None = None
) -> Context:
    """A run over as many examples as there are labels; the network always says the same."""
    number, model = len(labels), Same(num_classes)
    return Context(
        model,
        KeepSampler(number),
        number,
        num_classes,
        epochs,
        seed=0,
        batch_size=2 * num_classes,
        given_labels=torch.tensor(labels),
        stage=Stage("training", epochs),
        new_model=lambda: Same(num_classes),
        probabilities=lambda _: probabilities,
        table=lambda columns: torch.zeros(number, columns),
    )


def make_batch(logits: Tensor, labels: Sequence[int], *views: Tensor) -> Batch:
    return Batch(torch.arange(len(labels)), logits, torch.tensor(labels), views)


def step(method: Method, context: Context, batch: Batch) -> StepOutput:
    """One epoch of one step, as the engine would call it."""
    method.begin_epoch(context)
    output = method.loss(context.model, batch)
    context.epoch += 1
    context.stage_epoch += 1
    method.end_epoch(context)
    return output


def go_to(context: Context, stage: Stage, number: int) -> None:
    context.stage, context.stage_number, context.stage_epoch = replace(stage), number, 0


def log_odds(*rows: Sequence[float]) -> Tensor:
    """Logits of which softmax makes these probabilities."""
    return torch.tensor(rows).log()
