"""Train a small head on features: SGD or what you give, a cosine schedule, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oddly.core import Denoiser
from oddly.data.base import Recipe

HIDDEN_EPOCHS = Recipe("hidden_head", 25, 128, 0.05, 5e-4)
"""How a head with a hidden layer was trained in all recordings, unless said otherwise."""

Observe = Callable[[Tensor, Tensor], Tensor]
"""Told the indices (B,) and logits (B, K) of a batch, gives the labels (B,) to train with."""


def hidden_head(features: int, classes: int, hidden: int = 256) -> nn.Module:
    return nn.Sequential(
        nn.Linear(features, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, classes)
    )


def train(
    head: nn.Module,
    inputs: Tensor,
    recipe: Recipe,
    draw_order: Callable[[], Tensor],
    observe: Observe,
    optimiser: torch.optim.Optimizer | None = None,
) -> Iterator[int]:
    """An epoch at a time; yields how many are finished."""
    optimiser = optimiser or torch.optim.SGD(
        head.parameters(),
        recipe.learning_rate,
        momentum=0.9,
        nesterov=True,
        weight_decay=recipe.weight_decay,
    )
    for epoch in range(recipe.epochs):
        batches = draw_order().split(recipe.batch_size)
        for step, index in enumerate(batches):
            if len(index) < 2:  # batch norm needs two
                continue
            done = (epoch + step / len(batches)) / recipe.epochs
            for group in optimiser.param_groups:
                group["lr"] = recipe.learning_rate * (1 + math.cos(math.pi * done)) / 2
            logits = head(inputs[index])
            loss = cross_entropy(logits, observe(index, logits.detach()))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        yield epoch + 1


def train_denoised(
    head: nn.Module, inputs: Tensor, given: Tensor, recipe: Recipe, denoiser: Denoiser
) -> Iterator[int]:
    """The same in a denoiser's hands; `denoiser.verdict` is there from epoch E on."""

    def observe(index: Tensor, logits: Tensor) -> Tensor:
        labels = denoiser.plant(index, given[index])
        denoiser.observe(index, logits, labels)
        return labels

    def draw_order() -> Tensor:
        return torch.tensor(list(denoiser.sampler))

    for epoch in train(head, inputs, recipe, draw_order, observe):
        denoiser.end_epoch(head)
        yield epoch
