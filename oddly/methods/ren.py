"""Learning to reweight examples (Ren, Zeng, Yang, Urtasun 2018); needs trusted labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call, jvp
from torch.nn import functional as F

from oddly.methods.base import Batch, Context, Method, StepOutput
from oddly.methods.judgement import Judgement


@dataclass
class Ren(Method):
    """w_i ∝ max(0, ⟨∇ CE_i(θ), ∇ L_C(θ)⟩), L = Σ_i w_i CE_i, L_C the loss of a trusted batch.

    The paper takes one virtual step and differentiates the trusted loss after it by the example
    weights, at weights 0. There the step has length 0, so the derivative is that dot product, and
    one forward-mode pass along ∇ L_C yields it for the whole batch, without a second-order graph.
    Trusted and other examples pass through batch normalisation separately. The judgement is ours:
    a weight, averaged over the epochs, of at most half the mean.
    """

    momentum: float = 0.9
    """Momentum of an example's average weight; for the judgement only."""

    needs_trusted_labels: ClassVar[bool] = True
    passes: ClassVar[float] = 3.0
    state: ClassVar[Sequence[str]] = ("averages",)

    def setup(self, context: Context) -> None:
        assert context.trusted is not None
        self.trusted, self.network = context.trusted, context.model
        self.averages = torch.ones(context.num_examples, device=context.device)

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        weights = self.weigh(self.network, batch)
        logits = model(batch.inputs)
        losses = F.cross_entropy(logits, batch.labels, reduction="none")
        relative = weights * len(weights)
        self.averages[batch.index] = torch.lerp(relative, self.averages[batch.index], self.momentum)
        return StepOutput((weights * losses).sum(), logits)

    def weigh(self, model: nn.Module, batch: Batch) -> Tensor:
        """w (B,), which sums to 1; all 0 if no example's gradient helps the trusted ones."""
        trusted = self.trusted.draw(len(batch.labels))
        # In fp32: under autocast, the tangents of the weights and the inputs would differ in type.
        with torch.autocast(batch.inputs.device.type, enabled=False):
            useful = self.agreement(model, batch, trusted).clamp_min(0)
        total = useful.sum()
        return useful / torch.where(total > 0, total, torch.ones_like(total))

    def agreement(self, model: nn.Module, batch: Batch, trusted: Batch) -> Tensor:
        """⟨∇ CE_i, ∇ L_C⟩ of each example (B,), by one pass in forward mode."""
        weights = dict(model.named_parameters())
        # Copies, because only the training pass may update the averages of batch normalisation.
        kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
        loss = F.cross_entropy(functional_call(model, kept, trusted.inputs), trusted.labels)
        direction = torch.autograd.grad(loss, list(weights.values()))

        def losses(at: dict[str, Tensor]) -> Tensor:
            fixed = {name: buffer.clone() for name, buffer in model.named_buffers()}
            logits = functional_call(model, (at, fixed), batch.inputs)
            return F.cross_entropy(logits, batch.labels, reduction="none")

        values = {name: weight.detach() for name, weight in weights.items()}
        along = dict(zip(weights, direction, strict=True))
        with warnings.catch_warnings(), torch.no_grad():
            for category in (FutureWarning, DeprecationWarning):  # torch's own, at the first call
                warnings.simplefilter("ignore", category)
            slopes: Tensor = jvp(losses, (values,), (along,))[1]
        return slopes.float()

    def end_epoch(self, context: Context) -> None:
        if context.is_last:
            self.judgement = Judgement.by_threshold(
                1 - self.averages, 0.5, context.epoch, "average weight ≤ half the mean"
            )
