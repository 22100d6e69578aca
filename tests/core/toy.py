"""A problem small enough to follow by hand, for the Denoiser's tests."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

from oddly.core import Denoiser, IndexedDataset

N, K, D = 60, 3, 4


class Toy:
    """Three separable classes, every tenth label wrong, and a linear model per epoch."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.true = torch.arange(N) % K
        self.inputs = 4 * F.one_hot(self.true, D).float()
        self.inputs += 0.1 * torch.randn(N, D, generator=generator)
        self.wrong = torch.arange(0, N, 10)
        self.labels = self.true.clone()
        self.labels[self.wrong] = (self.true[self.wrong] + 1) % K

    def model(self, epoch: int) -> nn.Linear:
        layer = nn.Linear(D, K)
        layer.weight.data = (2.0 + epoch) * torch.eye(K, D)
        nn.init.zeros_(layer.bias)
        return layer

    def run(self, denoiser: Denoiser, epochs: int) -> None:
        """`epochs` more epochs, in batches of seven."""
        for epoch in range(denoiser.epoch, denoiser.epoch + epochs):
            model = self.model(epoch)
            for index in torch.tensor(list(denoiser.sampler)).split(7):
                labels = denoiser.plant(index, self.labels[index])
                denoiser.observe(index, model(self.inputs[index]), labels)
            denoiser.end_epoch(model)


def make(**options: Any) -> Denoiser:
    """By default the paper's rule: only the number of examples is given."""
    return Denoiser(**{"examples": N, "num_classes": K, "prune_after": 3, **options})


def planting(**options: Any) -> Denoiser:
    """With sentinels: six of the sixty."""
    return make(**{"counterfactual": "sentinels", **options})


def zeros(size: int = N) -> IndexedDataset:
    """Every label 0, but for what is planted."""
    return IndexedDataset(TensorDataset(torch.zeros(size), torch.zeros(size, dtype=torch.int64)))
