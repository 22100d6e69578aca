"""Latent class-conditional noise (Yao, Wu, Zhang, Tsang, Sun 2019): drawn labels, dynamic T."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.methods.base import Batch, Context, Method, Stage, StepOutput
from oddly.methods.judgement import Judgement
from oddly.methods.transition import from_labels, posterior


@dataclass
class LCCN(Method):
    """z_n ~ P(z = i | x, y) ∝ p_i T_iy, train on CE(f(x), z); T ∝ C + α, C_ij = #{z=i, y=j}.

    Plain training first; then T is fixed at its estimate for a while, then follows the counts.
    Departures: T is refreshed once an epoch rather than every 200 steps, no weights are averaged,
    there is no class of outliers, and the first stage is cut short (see `loss_correction`).
    The judgement: the last P(z = y | x, y) is below ½.
    """

    alpha: float = 1.0
    """Added to every count."""
    first_share: float = 0.25
    """Length of the first stage, as a share of the epochs."""
    fixed_share: float = 0.4
    """How long T is then fixed, likewise (the authors: 20,000 of about 47,000 steps)."""

    state: ClassVar[Sequence[str]] = ("latent", "counts", "matrix", "beliefs", "sampling")

    def stages(self, epochs: int) -> Sequence[Stage]:
        return (
            Stage("plain", max(1, round(self.first_share * epochs))),
            Stage("latent", epochs),
        )

    def setup(self, context: Context) -> None:
        classes, device = context.num_classes, context.device
        self.latent = context.given_labels.clone()
        self.counts = torch.zeros(classes, classes, dtype=torch.int64, device=device)
        self.matrix = torch.eye(classes, device=device)
        self.beliefs = torch.ones(context.num_examples, device=device)
        self.sampling = False

    def begin_stage(self, context: Context) -> None:
        self.sampling = context.stage.name == "latent"

    def end_stage(self, context: Context) -> None:
        """After plain training: the first latent labels, their counts, and the first T."""
        if self.sampling:
            return
        p = context.probabilities(context.model)
        self.latent = p.argmax(1)
        self.matrix = from_labels(p, context.given_labels)
        self.count(self.latent, context.given_labels, 1)

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        if not self.sampling:
            return StepOutput(F.cross_entropy(logits, batch.labels), logits)
        drawn = self.draw(logits.detach().float().softmax(1), batch)
        return StepOutput(F.cross_entropy(logits, drawn), logits)

    def draw(self, p: Tensor, batch: Batch) -> Tensor:
        """Draw new latent labels for a batch and update the counts."""
        belief = posterior(p, self.matrix, batch.labels)
        drawn = torch.multinomial(belief.clamp_min(1e-12), 1).squeeze(1)
        self.beliefs[batch.index] = belief.gather(1, batch.labels[:, None]).squeeze(1)
        self.count(self.latent[batch.index], batch.labels, -1)
        self.count(drawn, batch.labels, 1)
        self.latent[batch.index] = drawn
        return drawn

    def count(self, latent: Tensor, given: Tensor, change: int) -> None:
        changes = torch.full_like(latent, change)
        self.counts.index_put_((latent, given), changes, accumulate=True)

    def end_epoch(self, context: Context) -> None:
        if self.sampling and context.stage_epoch >= self.fixed_share * context.stage.epochs:
            self.matrix = F.normalize(self.counts + self.alpha, p=1, dim=1)
        if context.is_last:
            self.judgement = Judgement.by_threshold(
                1 - self.beliefs, 0.5, context.epoch, "P(true = given | x, given) ≤ 0.5"
            )
