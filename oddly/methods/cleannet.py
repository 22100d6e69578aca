"""CleanNet (Lee, He, Zhang, Yang 2018): is this label right? Learnt from trusted labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.methods.base import Batch, Context, Method, Stage, StepOutput, Trusted
from oddly.methods.judgement import Judgement

CENTRES = 32
MARGIN = 0.1
NEGATIVE, UNSUPERVISED, RECONSTRUCTION = 5.0, 0.1, 0.1
BATCH = 32


class Verifier(nn.Module):
    """cos(φ_q(v), φ_s(class)): an auto-encoder of the example, attention over class prototypes."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(features, 256), nn.Tanh(), nn.Linear(256, 128), nn.Tanh()
        )
        self.decode = nn.Sequential(nn.Linear(128, 256), nn.Tanh(), nn.Linear(256, features))
        self.reference = nn.Sequential(
            nn.Linear(features, 512), nn.Tanh(), nn.Linear(512, 256), nn.Tanh()
        )
        self.attend = nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1, bias=False))
        self.summarise = nn.Sequential(nn.Linear(256, 128), nn.Tanh())

    def forward(self, v: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
        """Similarities (B, K) to every class, and the reconstruction; centres are (K, 32, D)."""
        query, h = self.encode(v), self.reference(centres)
        reference = self.summarise((self.attend(h).softmax(1) * h).sum(1))  # (K, 128)
        similarity = F.normalize(query, dim=1) @ F.normalize(reference, dim=1).T
        return similarity, self.decode(query)


def verification_loss(similarity: Tensor, right: Tensor) -> Tensor:
    """l (1 - s) + 5 (1 - l) max(0, s - 0.1), of each pair."""
    return torch.where(right, 1 - similarity, NEGATIVE * (similarity - MARGIN).clamp_min(0))


@dataclass
class CleanNet(Method):
    """w_i ∝ max(0, s_i), s_i = cos(φ_q(x_i), φ_s(y_i)), then L = mean_i w_i CE_i on a new network.

    Plain training yields the features. s is learnt from trusted pairs of example and label, right
    or wrong, plus pseudo-labels 1[s ≥ 0.1] and a reconstruction term. Departures: one round, the
    first stage cut short (see `loss_correction`), a linear last layer of the auto-encoder, features
    less their mean, weights whose mean is 1, and as the true class of trusted examples is known,
    every other one serves as a wrong label for them. The judgement: s < 0.1.
    """

    first_share: float = 0.25
    """Length of the first stage, as a share of the epochs."""
    steps: int = 500
    """Training steps of the verifier."""
    rate: float = 0.01
    """Learning rate of the verifier."""

    needs_trusted_labels: ClassVar[bool] = True
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {
        "first_share": (0, 1),
        "rate": (0, math.inf),
    }
    state: ClassVar[Sequence[str]] = ("weights", "judgement")

    def stages(self, epochs: int) -> Sequence[Stage]:
        first = max(1, round(self.first_share * epochs))
        return (Stage("plain", first), Stage("weighted", epochs, fresh=True))

    def setup(self, context: Context) -> None:
        self.weights = torch.ones(context.num_examples, device=context.device)

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        losses = F.cross_entropy(logits, batch.labels, reduction="none")
        return StepOutput((self.weights[batch.index] * losses).mean(), logits)

    def end_stage(self, context: Context) -> None:
        if context.stage.name != "plain":
            return
        assert context.trusted is not None
        similarity = self.verify(context, context.trusted)
        weights = similarity.clamp_min(0)
        # Not normalised, they would also scale the learning rate, down to a tenth.
        self.weights = weights / weights.mean().clamp_min(1e-6)
        self.judgement = Judgement.by_threshold(
            -similarity, -MARGIN, context.epoch, f"similarity to its class ≤ {MARGIN:g}"
        )

    def verify(self, context: Context, trusted: Trusted) -> Tensor:
        """s (N,) of each example with its given label."""
        labels = context.given_labels
        v = context.features(context.model).relu().log1p()
        checked = trusted.features(context.model).relu().log1p()
        # Without the mean taken off, all examples look alike and training stalls at s = MARGIN.
        common = v.mean(0)
        v, checked = v - common, checked - common
        centres = find_centres(v, labels, context.num_classes, context.seed)
        generator = torch.Generator().manual_seed(context.seed)
        torch.manual_seed(context.seed)
        verifier = Verifier(v.shape[1]).to(v.device)
        optimizer = torch.optim.SGD(
            verifier.parameters(), self.rate, momentum=0.9, weight_decay=1e-4
        )
        for _ in range(self.steps):
            known = torch.randint(len(checked), (BATCH,), generator=generator)
            other = torch.randint(len(v), (BATCH,), generator=generator)
            both = torch.cat([checked[known], v[other]])
            likeness, rebuilt = verifier(both, centres)
            right = F.one_hot(trusted.labels[known], context.num_classes).bool()
            loss = verification_loss(likeness[:BATCH], right)
            # The right class weighs as much as all the wrong ones together.
            weight = torch.where(right, 1.0, 1 / max(1, context.num_classes - 1))
            own = likeness[BATCH:].gather(1, labels[other][:, None]).squeeze(1)
            guessed = verification_loss(own, own.detach() >= MARGIN)
            loss = (loss * weight).sum(1).mean() + UNSUPERVISED * guessed.mean()
            loss = loss + RECONSTRUCTION * (rebuilt - both).square().sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            similarity: Tensor = verifier(v, centres)[0]
        return similarity.gather(1, labels[:, None]).squeeze(1)


def find_centres(features: Tensor, labels: Tensor, num_classes: int, seed: int) -> Tensor:
    """(K, 32, D): k-means centres of each label's examples; small classes repeat examples."""
    from sklearn.cluster import KMeans

    centres = torch.zeros(num_classes, CENTRES, features.shape[1])
    for k in range(num_classes):
        own = features[labels == k].cpu()
        if len(own) > CENTRES:
            own = torch.from_numpy(
                KMeans(CENTRES, n_init=1, random_state=seed).fit(own.numpy()).cluster_centers_
            )
        if len(own):
            centres[k] = own[torch.arange(CENTRES) % len(own)]
    return centres.to(features.device)
