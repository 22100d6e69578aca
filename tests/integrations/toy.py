"""Blobs with wrong labels, and what Lightning and Hugging Face need to train on them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

from oddly.core import Verdict

N, K, EPOCHS = 640, 5, 12
BATCH = 40


def make_blobs(num_examples: int = N, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Points around the corners of a polygon, the labels given, and the true ones."""
    generator = torch.Generator().manual_seed(seed)
    true = torch.arange(num_examples) % K
    angle = true * (2 * torch.pi / K)
    points = torch.stack((angle.cos(), angle.sin()), 1)
    points += 0.15 * torch.randn(num_examples, 2, generator=generator)
    wrong = torch.rand(num_examples, generator=generator) < 0.4
    shift = torch.randint(1, K, (num_examples,), generator=generator)
    return points, torch.where(wrong, (true + shift) % K, true), true


def make_network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, K))


def given_set() -> TensorDataset:
    points, given, _ = make_blobs()
    return TensorDataset(points, given)


class Dicts(Dataset[dict[str, Any]]):
    """The same as mappings, with a column that nobody wants."""

    def __init__(self, inputs: Tensor, labels: Tensor, name: str = "inputs") -> None:
        self.inputs, self.labels, self.name = inputs, labels, name

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, Any]:
        label = int(self.labels[index])
        return {self.name: self.inputs[index], "labels": label, "note": f"example {index}"}


def score(keep: Tensor, given: Tensor, true: Tensor) -> tuple[float, float]:
    """Precision and recall of "removed = wrong"."""
    removed, wrong = ~keep, given != true
    hits = int((removed & wrong).sum())
    return hits / int(removed.sum()), hits / int(wrong.sum())


def check(verdict: Verdict | None) -> None:
    """The verdict on the blobs is a good one."""
    assert verdict is not None
    _, given, true = make_blobs()
    precision, recall = score(verdict.keep, given, true)
    assert precision > 0.9
    assert recall > 0.8


def check_epoch(epoch: int, inputs: Tensor, labels: Tensor, verdict: Verdict) -> None:
    """An epoch keeps its length; planted labels before E, after it kept examples alone."""
    points, given, _ = make_blobs()
    by_point = {tuple(point.tolist()): place for place, point in enumerate(points)}
    index = torch.tensor([by_point[tuple(point.tolist())] for point in inputs])
    planted = int((labels != given[index]).sum())
    assert len(index) == N
    if epoch < verdict.epoch:
        assert len(set(index.tolist())) == N
        assert planted == N // 10  # the sentinels
    else:
        assert verdict.keep[index].all()
        assert planted == 0
