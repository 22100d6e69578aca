"""DivideMix (Li, Socher, Hoi 2020): two networks, a mixture model, MixMatch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.methods.base import Batch, Context, Method, StepOutput
from oddly.methods.judgement import Judgement

TEMPERATURE, BETA, CUT = 0.5, 4.0, 0.5


def clean_probabilities(losses: Tensor) -> Tensor:
    """P(right label) of each example, by the component of a 2-component GMM with the smaller mean.

    Losses are scaled to 0..1 first. Can be used alone: `clean_probabilities(losses) > 0.5`.
    """
    from sklearn.mixture import GaussianMixture

    low, high = losses.aminmax()
    scaled = ((losses - low) / (high - low).clamp_min(1e-12)).double().cpu()[:, None].numpy()
    model = GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten iterations need not converge
        posterior = model.fit(scaled).predict_proba(scaled)[:, model.means_.argmin()]
    return torch.from_numpy(posterior).to(losses)


@dataclass
class DivideMix(Method):
    """Refine the labels that a mixture model of the losses believes, and replace the others.

    w = P(right label) by the *other* network's losses. Believed (w > ½): target = sharpen(w y +
    (1 - w) p̄); else target = sharpen(mean of both networks' p̄). All are mixed by λ = max(l, 1-l),
    l ~ Beta(4, 4): L = CE + λ_u ‖p - target‖² / K + Σ_k (1/K) log((1/K) / mean p_k). Departures:
    believed and other examples share one batch in their own proportion; guesses come from networks
    in evaluation mode; the first network alone is tested. The judgement: mean w ≤ ½.
    """

    unlabelled_weight: float = 25.0
    """λ_u after its rise (the authors: 0 for asymmetric, 25 to 150 for heavy uniform noise)."""
    warmup: int | None = None
    """Epochs of plain training first; by default 10, at most a quarter of all."""
    ramp: int = 16
    """Epochs over which λ_u rises."""

    views: ClassVar[int] = 2
    passes: ClassVar[float] = 6.0
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"ramp": (1, math.inf)}
    state: ClassVar[Sequence[str]] = ("second", "clean")

    def setup(self, context: Context) -> None:
        self.first, self.second = context.model, context.new_model()
        self.classes, self.weight = context.num_classes, 0.0
        # Column 0: by the first network's losses, used by the second; column 1 the other way round.
        self.clean = torch.ones(context.num_examples, 2, device=context.device)
        self.warm = True

    def parameter_groups(self) -> Sequence[dict[str, Any]]:
        return ({"params": self.second.parameters()},)

    def begin_epoch(self, context: Context) -> None:
        self.second.train()
        begin = min(10, max(1, context.epochs // 4)) if self.warmup is None else self.warmup
        self.warm = context.epoch < begin
        if self.warm:
            return
        self.weight = self.unlabelled_weight * min((context.epoch - begin + 1) / self.ramp, 1.0)
        for column, network in enumerate((self.first, self.second)):
            p = context.probabilities(network).gather(1, context.given_labels[:, None])
            self.clean[:, column] = clean_probabilities(-p.squeeze(1).clamp_min(1e-12).log())

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        if self.warm:
            outputs = [network(batch.inputs) for network in (model, self.second)]
            losses = [F.cross_entropy(logits, batch.labels) for logits in outputs]
            return StepOutput(losses[0] + losses[1], outputs[0])
        views = (batch.inputs, *batch.views)
        guesses = [self.guess(network, views) for network in (self.first, self.second)]
        both = (guesses[0] + guesses[1]) / 2
        losses = [
            self.mixed_loss(network, batch, views, guesses[own], both, 1 - own)
            for own, network in enumerate((self.first, self.second))
        ]
        return StepOutput(losses[0] + losses[1])

    @torch.no_grad()
    def guess(self, network: nn.Module, views: Sequence[Tensor]) -> Tensor:
        """p̄ (B, K): the mean over the views."""
        network.eval()
        p = torch.stack([network(view).float().softmax(1) for view in views]).mean(0)
        network.train()
        return p

    def mixed_loss(
        self,
        network: nn.Module,
        batch: Batch,
        views: Sequence[Tensor],
        own: Tensor,
        both: Tensor,
        column: int,
    ) -> Tensor:
        w = self.clean[batch.index, column][:, None]
        given = F.one_hot(batch.labels, self.classes).float()
        believed = w > CUT
        target = sharpen(torch.where(believed, w * given + (1 - w) * own, both))
        inputs, targets = torch.cat(list(views)), target.repeat(len(views), 1)
        labelled = believed.squeeze(1).repeat(len(views))
        share = float(torch.distributions.Beta(torch.tensor(BETA), torch.tensor(BETA)).sample())
        share = max(share, 1 - share)
        partner = torch.randperm(len(inputs)).to(inputs.device, non_blocking=True)
        log_p = F.log_softmax(network(torch.lerp(inputs[partner], inputs, share)).float(), 1)
        targets = torch.lerp(targets[partner], targets, share)
        fit = -(targets * log_p).sum(1)
        distance = (log_p.exp() - targets).square().mean(1)
        prior = torch.full((self.classes,), 1 / self.classes, device=inputs.device)
        spread = (prior * (prior / log_p.exp().mean(0).clamp_min(1e-12)).log()).sum()
        loss = _mean(fit, labelled) + self.weight * _mean(distance, ~labelled)
        return loss + spread

    def end_epoch(self, context: Context) -> None:
        if context.is_last:
            self.judgement = Judgement.by_threshold(
                1 - self.clean.mean(1), 1 - CUT, context.epoch, "P(right label) ≤ 0.5"
            )


def sharpen(p: Tensor) -> Tensor:
    """p^(1/T), normalised so that rows sum to 1 again."""
    return F.normalize(p ** (1 / TEMPERATURE), p=1, dim=1)


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean over the mask; 0 if it is empty."""
    return (values * mask).sum() / mask.sum().clamp_min(1)
