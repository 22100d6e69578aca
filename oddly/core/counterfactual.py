"""What loss a uniformly random label would have had, and the threshold that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F

from oddly.core.ranks import count_ranks

CHUNK_BYTES = 2**26  # working memory of one chunk of draws
FEW_CLASSES = 64


def plain_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each example (B,) from logits (B, K), in fp32 whatever they are in."""
    logits, labels = logits.detach().float(), labels.long()
    if logits.device.type == "cpu" and logits.shape[1] <= FEW_CLASSES:
        # The CPU's log-softmax is slow along short rows; transposed, it is six times faster.
        columns = F.log_softmax(logits.t().contiguous(), 0)
        return F.nll_loss(columns.t(), labels, reduction="none")
    return F.cross_entropy(logits, labels, reduction="none")


@torch.no_grad()
def draw_losses(
    head: nn.Linear,
    draws: int = 20_000,
    generator: torch.Generator | None = None,
    classes: Tensor | None = None,
) -> Tensor:
    """Draw losses from the paper's q_n: l = -y_k + log Σ_i exp(y_i), y = fc(relu(x)), x ~ N(0, I).

    Paper, "Thresholds that classify mislabeled examples". Its sum over [N] and its k from
    {0, …, K} are both read as the K classes (k as one of `classes`, if given). Drawn on the head's
    device (or the generator's), in fp32, a chunk at a time so that K = 10,000 and D = 4,096 fit
    anywhere.
    """
    device = head.weight.device if generator is None else generator.device
    weight = head.weight.detach().to(device, torch.float32)  # (K, D)
    bias = None if head.bias is None else head.bias.detach().to(device, torch.float32)
    num_classes, features = weight.shape
    classes = torch.arange(num_classes) if classes is None else classes
    classes = classes.to(device)
    rows = max(1, CHUNK_BYTES // (4 * (3 * num_classes + 2 * features)))
    losses = []
    for start in range(0, draws, rows):
        size = min(rows, draws - start)
        x = torch.randn(size, features, device=device, generator=generator)
        k = torch.randint(len(classes), (size,), device=device, generator=generator)
        logits = F.linear(x.relu_(), weight, bias)
        losses.append(plain_losses(logits, classes[k]))
    return torch.cat(losses)


def draw_alike(head: nn.Linear, draws: int, seed: int, classes: Tensor) -> Tensor:
    """The same, for all ranks: one threshold even if they have different devices."""
    # On the head's device: a GPU takes 0.2 ms for what takes a CPU 50 ms or more.
    generator = torch.Generator(head.weight.device).manual_seed(seed)
    drawn = draw_losses(head, draws, generator, classes)
    if count_ranks() > 1:
        dist.broadcast(drawn, 0)
    return drawn


@dataclass(frozen=True)
class Counterfactual:
    """The sorted losses of examples with random labels; thresholds are their percentiles."""

    losses: Tensor  # (S,) ascending
    source: str

    @classmethod
    def from_losses(cls, losses: Tensor, source: str) -> Counterfactual:
        return cls(losses.detach().float().cpu().sort().values, source)

    def threshold(self, percentile: float) -> float:
        """The p-th percentile, p in 0..100, linear between neighbours (as NumPy's default)."""
        position = percentile / 100 * (len(self.losses) - 1)
        low = int(position)
        high = min(low + 1, len(self.losses) - 1)
        a, b = float(self.losses[low]), float(self.losses[high])
        return a + (b - a) * (position - low)

    def percentile_of(self, losses: Tensor) -> Tensor:
        """For each loss, the percentage of counterfactual losses below it; NaN stays NaN."""
        below = torch.searchsorted(self.losses, losses.float().cpu().contiguous())
        share = below * (100 / len(self.losses))
        return torch.where(losses.cpu().isnan(), torch.nan, share)

    def summary(self, bins: int = 60) -> dict[str, Any]:
        """Percentiles 0..100 and a histogram, small enough to store with every run."""
        finite = self.losses[self.losses.isfinite()]  # a class whose logit is -inf has no bin
        low, high = (float(finite[end]) if len(finite) else 0.0 for end in (0, -1))
        counts, edges = torch.histogram(finite, bins, range=(low, max(high, low + 1e-6)))
        return {
            "source": self.source,
            "draws": len(self.losses),
            "percentiles": {str(p): self.threshold(p) for p in range(101)},
            "histogram": {
                "edges": edges.tolist(),
                "counts": counts.to(torch.int64).tolist(),
            },
        }
