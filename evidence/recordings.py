"""Heads whose every epoch is recorded, sentinels planted throughout: to be judged later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evidence.features import Features
from evidence.heads import HIDDEN_EPOCHS, hidden_head, train
from oddly.core.judging import judge_by_sentinels
from oddly.core.ledger import LossLedger
from oddly.core.sentinels.planting import Scored, Sentinels
from oddly.core.verdict import Verdict
from oddly.data.base import Recipe

SEED = 0


@dataclass(frozen=True)
class Recording:
    """T epochs of N examples. Sentinels serve as such alone: they are not judged."""

    scores: Tensor  # (T, N) how far the best other class lay above the label trained with
    rivals: Tensor  # (T, N) that class
    labels: Tensor  # (N,) trained with
    planted: Tensor  # (N,) bool: sentinels
    wrong: Tensor  # (N - S,) bool, of the others
    classes: int

    def judge(self, at: int | None = None, percentile: float | None = None) -> Verdict:
        """What the default rule says of it, after epoch `at` or when it finds that it is time."""
        sentinels, ledger = _sentinels(len(self.labels), self.classes), LossLedger(len(self.wrong))
        for epoch, scores in enumerate(self.scores.float(), start=1):
            for book, values in (
                (sentinels.ledger, scores[self.planted]),
                (ledger, scores[~self.planted]),
            ):
                book.record(torch.arange(len(values)), values)
            ledger.close_epoch(sentinels.close_epoch(ledger.current))
            if epoch == at:
                break
            if at is None and sentinels.say_now(len(self.scores), ledger.values):
                break
        rivals = self.rivals[epoch - 1].long()
        examples, planted = (
            Scored(book.values.clone(), self.labels[which], rivals[which])
            for book, which in ((ledger, ~self.planted), (sentinels.ledger, self.planted))
        )
        losses = examples.scores.clone()
        return judge_by_sentinels(examples, losses, planted, percentile, epoch, self.classes)


def record(
    images: Features,
    labelled: NDArray[np.int64],
    recipe: Recipe = HIDDEN_EPOCHS,
    linear: bool = False,
    adam: bool = False,
) -> Recording:
    """Train a head on `images` under these labels; scores are kept in half precision."""
    given, true = torch.from_numpy(labelled), torch.from_numpy(images.true)
    number, size, classes = len(given), images.inputs.shape[1], images.classes
    torch.manual_seed(SEED)
    head = torch.nn.Linear(size, classes) if linear else hidden_head(size, classes)
    adamw = torch.optim.AdamW(head.parameters(), recipe.learning_rate, weight_decay=0.01)
    sentinels = _sentinels(number, classes)
    labels = sentinels.plant(torch.arange(number), given)
    scores = torch.zeros(number)
    rivals = torch.zeros(number, dtype=torch.uint8)

    def observe(index: Tensor, logits: Tensor) -> Tensor:
        trained = labels[index, None]
        best, other = logits.scatter(1, trained, -torch.inf).max(1)
        scores[index] = best - logits.gather(1, trained)[:, 0]
        rivals[index] = other.to(torch.uint8)
        return labels[index]

    def draw_order() -> Tensor:
        return torch.randperm(number)

    epochs = train(head, images.inputs, recipe, draw_order, observe, adamw if adam else None)
    kept = [(scores.half(), rivals.clone()) for _ in epochs]
    planted = torch.zeros(number, dtype=torch.bool)
    planted[sentinels.indices] = True
    return Recording(
        scores=torch.stack([one for one, _ in kept]),
        rivals=torch.stack([other for _, other in kept]),
        labels=labels,
        planted=planted,
        wrong=(given != true)[~planted],
        classes=classes,
    )


def _sentinels(number: int, classes: int) -> Sentinels:
    return Sentinels(number, classes, "ema", SEED)
