"""Generalised cross-entropy (Zhang & Sabuncu 2018), plain and truncated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from oddly.errors import InputError
from oddly.methods.base import Batch, Context, Method, StepOutput
from oddly.methods.judgement import Judgement

SMALLEST = 1e-7  # lower bound on p_y: the gradient of p^q is infinite at 0
LEARNT = 0.1  # a class is not learnt yet if a smaller share of it is believed


@dataclass
class GCE(Method):
    """L_q = (1 - p_y^q) / q: cross-entropy as q → 0, absolute error at q = 1.

    Its gradient is cross-entropy's times p_y^q, so labels that the network does not believe hardly
    count. The judgement is ours: p_y ≤ `cut` at the end.
    """

    q: float = 0.7
    """Between cross-entropy (near 0) and absolute error (1); smaller with 100 classes."""
    cut: float = 0.5
    """p_y from which on an example is believed (the paper's k)."""

    state: ClassVar[Sequence[str]] = ("confidences",)

    def __post_init__(self) -> None:
        if not 0 < self.q <= 1:
            raise InputError(f"gce's q must be above 0 and at most 1, got {self.q:g}")
        if not 0 < self.cut < 1:
            raise InputError(f"gce's cut must be within 0..1, got {self.cut:g}")

    def setup(self, context: Context) -> None:
        self.confidences = torch.ones(context.num_examples, device=context.device)

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        p = logits.float().softmax(1).gather(1, batch.labels[:, None]).squeeze(1)
        self.confidences[batch.index] = p.detach()
        return StepOutput(self.from_probabilities(p, batch.index).mean(), logits)

    def from_probabilities(self, p: Tensor, index: Tensor) -> Tensor:
        """L_q of each example from p_y (B,)."""
        return (1 - p.clamp_min(SMALLEST) ** self.q) / self.q

    def end_epoch(self, context: Context) -> None:
        if context.is_last:
            self.judgement = Judgement.by_threshold(
                1 - self.confidences, 1 - self.cut, context.epoch, f"p of the label ≤ {self.cut:g}"
            )


@dataclass
class TruncatedGCE(GCE):
    """w_i (L_q(p_y) - L_q(k)), w_i = 1 where p_y > k in a sweep of the present network, else 0.

    All w_i are 1 for the first third of the epochs. Departures: the sweeps use the current network,
    not the best one so far, which would have to be chosen on a test set; and a class that the
    network has not learnt yet keeps its weights, or it would never be learnt.
    """

    start: int | None = None
    """Finished epochs before the first sweep; by default a third of all."""
    every: int | None = None
    """Epochs between sweeps; by default a twelfth of all."""

    state: ClassVar[Sequence[str]] = ("weights", "confidences")

    def setup(self, context: Context) -> None:
        super().setup(context)
        self.weights = torch.ones(context.num_examples, device=context.device)

    def begin_epoch(self, context: Context) -> None:
        start = round(context.epochs / 3) if self.start is None else self.start
        every = self.every or max(1, round(context.epochs / 12))
        if context.epoch < max(start, 1) or (context.epoch - start) % every:
            return
        p = context.probabilities(context.model)
        self.confidences = p.gather(1, context.given_labels[:, None]).squeeze(1)
        believed = (self.confidences > self.cut).float()
        shares = torch.zeros(context.num_classes, device=p.device)
        counts = torch.bincount(context.given_labels, minlength=context.num_classes)
        shares.index_add_(0, context.given_labels, believed)
        unlearnt = shares < LEARNT * counts
        self.weights = torch.where(unlearnt[context.given_labels], 1.0, believed)

    def from_probabilities(self, p: Tensor, index: Tensor) -> Tensor:
        floor = (1 - self.cut**self.q) / self.q
        above: Tensor = super().from_probabilities(p, index) - floor
        return self.weights[index] * above

    def end_epoch(self, context: Context) -> None:
        if context.is_last:
            keep, rule = self.weights > 0, f"p of the label ≤ {self.cut:g} in the last sweep"
            self.judgement = Judgement.by_mask(keep, 1 - self.confidences, context.epoch, rule)
