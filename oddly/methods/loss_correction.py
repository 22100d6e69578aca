"""Forward and backward loss correction (Patrini, Rozza, Menon, Nock, Qu 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.methods.base import Batch, Context, Method, Stage, StepOutput
from oddly.methods.judgement import Judgement
from oddly.methods.transition import from_anchors, from_labels, from_trusted, posterior

LARGEST_CONDITION = 1e4


@dataclass
class LossCorrection(Method):
    """Forward: -log Σ_i p_i T_iy. Backward: Σ_j (T⁻¹)_yj (-log p_j). T_ij = P(given j | true i).

    A first stage of plain training estimates T; a second stage starts over with the corrected loss.
    Departure: the first stage is cut short, because a network that has memorised its labels would
    find no noise. The judgement: argmax_i p_i T_iy, at the end, is not the label.
    """

    direction: str = "forward"
    """`forward` or `backward` (unbiased, but of high variance)."""
    estimate: str = "anchors"
    """How T is estimated: `anchors` (the paper's) or `labels` (a mean over all examples)."""
    first_share: float = 0.25
    """Length of the first stage, as a share of the epochs."""

    state: ClassVar[Sequence[str]] = ("matrix", "corrected")

    def __post_init__(self) -> None:
        for name, known in (
            ("direction", ("forward", "backward")),
            ("estimate", ("anchors", "labels")),
        ):
            if getattr(self, name) not in known:
                raise InputError(
                    f"{name} must be {' or '.join(known)}, got '{getattr(self, name)}'"
                )

    def stages(self, epochs: int) -> Sequence[Stage]:
        first = max(1, round(self.first_share * epochs))
        return (Stage("plain", first), Stage("corrected", epochs, fresh=True))

    def setup(self, context: Context) -> None:
        self.matrix = torch.eye(context.num_classes, device=context.device)
        self.corrected = False

    def begin_stage(self, context: Context) -> None:
        self.corrected = context.stage.name == "corrected"

    def end_stage(self, context: Context) -> None:
        if self.corrected:
            self.judgement = self.judge(context)
            return
        p = context.probabilities(context.model)
        self.set_matrix(
            from_anchors(p) if self.estimate == "anchors" else from_labels(p, context.given_labels)
        )

    def set_matrix(self, matrix: Tensor) -> None:
        condition = float(torch.linalg.cond(matrix.cpu().double()))
        if self.direction == "backward" and not condition < LARGEST_CONDITION:
            raise InputError(
                f"the estimated noise matrix cannot be inverted (condition number {condition:.2g});"
                " use direction=forward"
            )
        self.matrix = matrix

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        if not self.corrected:
            return StepOutput(F.cross_entropy(logits, batch.labels), logits)
        return StepOutput(self.correct(logits.float(), batch.labels).mean(), logits)

    def correct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The corrected loss of each example."""
        if self.direction == "backward":
            # `inv` would wait for the GPU in every step to check what `set_matrix` has checked.
            inverse: Tensor = torch.linalg.inv_ex(self.matrix.float()).inverse
            return -(inverse[labels] * F.log_softmax(logits, 1)).sum(1)
        column = self.matrix.T[labels].clamp_min(1e-12)  # (B, K): T_iy
        return -torch.logsumexp(F.log_softmax(logits, 1) + column.log(), 1)

    def judge(self, context: Context) -> Judgement:
        p = context.probabilities(context.model)
        belief = posterior(p, self.matrix, context.given_labels)
        rule = "under T another class is likelier"
        return Judgement.from_table(belief, context.given_labels, context.epoch, rule)


@dataclass
class TrustedLossCorrection(LossCorrection):
    """Loss correction with T counted from trusted labels: one stage, nothing estimated."""

    needs_trusted_labels: ClassVar[bool] = True

    def stages(self, epochs: int) -> Sequence[Stage]:
        return (Stage("corrected", epochs),)

    def setup(self, context: Context) -> None:
        super().setup(context)
        assert (trusted := context.trusted) is not None
        classes = context.num_classes
        self.set_matrix(from_trusted(trusted.labels, trusted.given_labels, classes))
