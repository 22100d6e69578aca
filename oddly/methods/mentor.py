"""MentorNet's mentor: a tiny network that weights examples by their loss, and its training."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LABEL_SIZE, EPOCH_SIZE, HIDDEN = 2, 5, 20
BATCH = 256
LARGEST_GRADIENT = 5.0


class Mentor(nn.Module):
    """v = σ(FC₁ tanh FC₂₀ [LSTM(CE, d), e_label, e_epoch]); the LSTM of size 1 reads both ways."""

    percents: Tensor

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.read = nn.LSTM(1, 1, bidirectional=True, batch_first=True)
        self.labels = nn.Embedding(num_classes, LABEL_SIZE)
        # Starts at 0, so that a class about which nothing was learnt is weighted like the others.
        nn.init.zeros_(self.labels.weight)
        self.register_buffer("percents", torch.randn(100, EPOCH_SIZE))  # not trained
        self.hidden = nn.Linear(2 + LABEL_SIZE + EPOCH_SIZE, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, losses: Tensor, above: Tensor, labels: Tensor, percents: Tensor) -> Tensor:
        """v before the sigmoid, (B,); `above` is d = CE - m, `percents` of training are 0..99."""
        _, (last, _) = self.read(torch.stack([losses, above], 1)[:, :, None])
        features = torch.cat([last[0], last[1], self.labels(labels), self.percents[percents]], 1)
        weights: Tensor = self.out(torch.tanh(self.hidden(features)))
        return weights.squeeze(1)


def teach(
    mentor: Mentor,
    losses: Tensor,
    above: Tensor,
    labels: Tensor,
    percents: Tensor,
    right: Tensor,
    steps: int,
    rate: float,
    generator: torch.Generator,
) -> None:
    """Fit v to v* = 1[the label is right] with Adam; tensors are (T,), one entry per sighting."""
    optimizer = torch.optim.Adam(mentor.parameters(), rate)
    for _ in range(steps):
        chosen = torch.randint(len(losses), (BATCH,), generator=generator).to(losses.device)
        said = mentor(losses[chosen], above[chosen], labels[chosen], percents[chosen])
        loss = F.binary_cross_entropy_with_logits(said, right[chosen].float())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(mentor.parameters(), LARGEST_GRADIENT)
        optimizer.step()


def plant_wrong(
    true: Tensor, given: Tensor, least: float, num_classes: int, generator: torch.Generator
) -> Tensor:
    """The given labels, with random wrong ones added until a share `least` is wrong."""
    right = (given == true).nonzero().flatten().cpu()
    wrong = len(given) - len(right)
    missing = max(0, round(least * len(given)) - wrong)
    chosen = right[torch.randperm(len(right), generator=generator)[:missing]]
    shift = torch.randint(1, num_classes, (len(chosen),), generator=generator)
    planted = given.clone()
    chosen = chosen.to(given.device)
    planted[chosen] = (given[chosen] + shift.to(given.device)) % num_classes
    return planted
