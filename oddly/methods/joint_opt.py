"""Joint optimisation of weights and labels (Tanaka, Ikami, Yamasaki, Aizawa 2018)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from oddly.methods.base import Batch, Context, Method, Stage, StepOutput
from oddly.methods.judgement import Judgement

FLOOR = 1e-12


@dataclass
class JointOpt(Method):
    """KL(s ‖ p) + α L_p + β L_e;  L_p = -Σ_k π_k log mean p_k,  L_e = -mean_i Σ_k p_ik log p_ik.

    Step 1, at a constant large rate: from `start` on, the labels s are the average of the network's
    recent predictions. Step 2: a new network trains on those labels only. Two tables of N x K
    floats. Departures: an exponential average over about `window` epochs instead of ten stored
    ones, and π is the share of each class among the given labels (uniform on balanced data).
    The judgement: s names another class.
    """

    alpha: float = 1.2
    """Weight of L_p, which keeps all examples from falling into one class."""
    beta: float = 0.8
    """Weight of L_e, which keeps the labels from staying soft."""
    start: float = 0.35
    """Share of step 1 before labels are replaced (the authors: epoch 70 of 200)."""
    window: int = 10
    """Epochs over which outputs are averaged."""
    second_share: float = 0.6
    """Length of step 2, as a share of the epochs (the authors: 120 to 200)."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"window": (1, math.inf)}
    state: ClassVar[Sequence[str]] = ("labels", "average", "weight", "second", "judgement")

    def stages(self, epochs: int) -> Sequence[Stage]:
        second = max(1, round(self.second_share * epochs))
        return (
            Stage("labels", epochs, schedule="constant"),
            Stage("network", second, fresh=True),
        )

    def setup(self, context: Context) -> None:
        classes = context.num_classes
        self.labels = context.table(classes)
        self.labels.scatter_(1, context.given_labels[:, None], 1.0)
        self.average = context.table(classes)
        self.weight = 0.0  # the sum of the average's weights
        self.second = False
        self.prior = F.normalize(self.labels.sum(0), p=1, dim=0)

    def begin_stage(self, context: Context) -> None:
        self.second = context.stage.name == "network"

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        log_p = F.log_softmax(logits.float(), 1)
        p, labels = log_p.exp(), self.labels[batch.index]
        loss = F.kl_div(log_p, labels, reduction="batchmean")
        if self.second:
            return StepOutput(loss, logits)
        self.average[batch.index] += (p.detach() - self.average[batch.index]) / self.window
        spread = -(self.prior * p.mean(0).clamp_min(FLOOR).log()).sum()
        entropy = -(p * log_p).sum(1).mean()
        return StepOutput(loss + self.alpha * spread + self.beta * entropy, logits)

    def end_epoch(self, context: Context) -> None:
        if self.second:
            return
        self.weight += (1 - self.weight) / self.window
        if context.stage_epoch >= self.start * context.stage.epochs:
            self.labels = self.mean_outputs()

    def mean_outputs(self) -> Tensor:
        """The average so far; it started at 0, so it is normalised to rows that sum to 1."""
        return self.average / self.weight

    def end_stage(self, context: Context) -> None:
        if not self.second:
            self.judgement = Judgement.from_table(
                self.labels, context.given_labels, context.epoch, "the average names another class"
            )
