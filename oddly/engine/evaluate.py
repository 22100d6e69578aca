"""Run a network over a split without training it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.engine.build import Parts
from oddly.engine.feed import Feed
from oddly.engine.sweep import sweep


@dataclass(frozen=True)
class Predictions:
    """The network's predictions for each example, un-augmented, in evaluation mode; on the CPU."""

    labels: Tensor  # (N,) predicted class
    confidences: Tensor  # (N,) its softmax probability
    losses: Tensor  # (N,) cross-entropy of the given label
    in_top5: Tensor  # (N,) bool: the given label is among the five most likely

    def accuracy(self, given: Tensor) -> float:
        """In percent."""
        return 100 * float((self.labels == given.cpu()).double().mean())

    def accuracy_by_class(self, given: Tensor, num_classes: int) -> list[float | None]:
        """In percent for each class; None for a class without examples."""
        given = given.cpu()
        right = torch.bincount(given[self.labels == given], minlength=num_classes).tolist()
        total = torch.bincount(given, minlength=num_classes).tolist()
        return [100 * r / n if n else None for r, n in zip(right, total, strict=True)]

    @property
    def top5_accuracy(self) -> float:
        return 100 * float(self.in_top5.double().mean())


@torch.no_grad()
def predict(
    model: nn.Module,
    feed: Feed,
    bf16: bool = False,
    num_classes: int | None = None,
    mirror: bool = False,
) -> Predictions:
    """One sweep over the feed's split; outputs beyond the classes are left out."""
    parts: list[tuple[Tensor, ...]] = []
    for logits, labels in sweep(model, feed, bf16, torch.arange(len(feed.split)), mirror):
        logits = logits[:, :num_classes]
        confidence, predicted = logits.softmax(1).max(1)
        losses = F.cross_entropy(logits, labels, reduction="none")
        top5 = logits.topk(min(5, logits.shape[1]), 1).indices
        parts.append((predicted, confidence, losses, (top5 == labels[:, None]).any(1)))
    return Predictions(*(torch.cat(column).cpu() for column in zip(*parts, strict=True)))


def score_test_set(parts: Parts, by_class: bool = False) -> dict[str, Any]:
    """Accuracies in percent; None without a test set and between tests.

    `by_class` (at E and at the end) tests in any case and adds the accuracy of each class.
    """
    due = by_class or parts.context.epoch % parts.config.test_every == 0
    if parts.test_feed is None or not due:
        return {"test_accuracy": None, "test_accuracy_top5": None}
    given, classes = parts.test_feed.labels, parts.context.num_classes
    mirror = parts.config.mirror_test
    predictions = predict(parts.model, parts.test_feed, parts.bf16, classes, mirror)
    accuracies: dict[str, Any] = {
        "test_accuracy": predictions.accuracy(given),
        "test_accuracy_top5": predictions.top5_accuracy,
    }
    if by_class:
        accuracies["test_accuracy_by_class"] = predictions.accuracy_by_class(given, classes)
    return accuracies
