"""Co-teaching (Han, Yao, Yu, Niu, Xu, Hu, Tsang, Sugiyama 2018): two networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.methods.base import Batch, Context, Method, StepOutput
from oddly.methods.judgement import Judgement

# Upper bound on the estimate of τ: a network that knows little disagrees with right labels too.
MOST = 0.5


@dataclass
class CoTeaching(Method):
    """Each network trains on the R(t) B examples that have the smallest loss for the other one.

    R(t) = 1 - τ min(t / T_k, 1), where τ is the noise rate. If τ is not given, it is estimated in
    the run: the smallest share, over the epochs until T_k, of examples whose label the network does
    not predict, at most half. The estimate is ours, and so is the judgement: the τ N examples with
    the largest loss, averaged over epochs and both networks. The first network is tested.
    """

    noise_rate: float | None = None
    """τ, 0..1; by default estimated while training."""
    ramp: int | None = None
    """T_k in epochs; by default 10, at most a quarter of all."""
    momentum: float = 0.9
    """Momentum of the averaged losses that the judgement ranks."""

    passes: ClassVar[float] = 2.0
    state: ClassVar[Sequence[str]] = ("second", "averages", "rate", "agreed")

    def __post_init__(self) -> None:
        if self.noise_rate is not None and not 0 <= self.noise_rate < 1:
            raise InputError(f"noise_rate must be at least 0 and below 1, got {self.noise_rate:g}")

    def setup(self, context: Context) -> None:
        self.second = context.new_model()
        self.averages = torch.full((context.num_examples,), torch.nan, device=context.device)
        self.agreed = torch.zeros(context.num_examples, dtype=torch.bool, device=context.device)
        self.rate = MOST if self.noise_rate is None else self.noise_rate
        self.forget = 0.0

    def parameter_groups(self) -> Sequence[dict[str, Any]]:
        return ({"params": self.second.parameters()},)

    def ramp_of(self, context: Context) -> int:
        return self.ramp or min(10, max(1, context.epochs // 4))

    def begin_epoch(self, context: Context) -> None:
        self.second.train()
        self.forget = self.rate * min(context.epoch / self.ramp_of(context), 1.0)

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        outputs = [network(batch.inputs) for network in (model, self.second)]
        losses = [F.cross_entropy(z.float(), batch.labels, reduction="none") for z in outputs]
        chosen = [pick_smallest(each.detach(), 1 - self.forget) for each in losses]
        self.remember(batch, (losses[0] + losses[1]).detach() / 2)
        self.agreed[batch.index] = outputs[0].argmax(1) == batch.labels
        loss = losses[0][chosen[1]].mean() + losses[1][chosen[0]].mean()
        return StepOutput(loss, outputs[0])

    def remember(self, batch: Batch, losses: Tensor) -> None:
        before = self.averages[batch.index]
        before = torch.where(before.isnan(), losses, before)
        self.averages[batch.index] = torch.lerp(losses, before, self.momentum)

    def end_epoch(self, context: Context) -> None:
        if self.noise_rate is None and context.epoch <= self.ramp_of(context):
            self.rate = min(self.rate, 1 - float(self.agreed.float().mean()))
        if context.is_last:
            number = round((1 - self.rate) * context.num_examples)
            keep = torch.zeros_like(self.agreed).index_fill(
                0, self.averages.argsort()[:number], True
            )
            limit = " (the most that is estimated; set noise_rate for more)" * (
                self.noise_rate is None and self.rate == MOST
            )
            rule = f"among the {100 * self.rate:.1f} % with the highest loss{limit}"
            self.judgement = Judgement.by_mask(keep, self.averages, context.epoch, rule)


def pick_smallest(losses: Tensor, share: float) -> Tensor:
    """Indices of the smallest losses, at least one."""
    return losses.argsort()[: max(1, round(share * len(losses)))]
