"""LASS (Arpit et al. 2017): which examples have a differently classified neighbour."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

STEP, SPREAD, RADIUS = 0.25 / 255, 0.2 / 255, 0.3 / 255


def critical_sample_ratio(
    model: nn.Module,
    inputs: Tensor,
    *,
    step: float = STEP,
    spread: float = SPREAD,
    radius: float = RADIUS,
    rounds: int = 100,
    fewest: int = 20,
    generator: torch.Generator | None = None,
) -> float:
    """The share of inputs (N, C, H, W) with another predicted class within `radius` per pixel.

    x' ← clip(x' + a sign(∇ CE(f(x'), ŷ)) + b N(0, I)) to |x' - x| ≤ r, until argmax f(x') ≠ ŷ.
    The share rises when a network memorises. Name and defaults are the paper's; the defaults are
    for pixels in 0..1, so for normalised inputs divide them by the standard deviation. A round that
    finds fewer than `fewest` new ones ends the search. The model's mode is restored.
    """
    was_training = model.training
    model.eval()
    with torch.no_grad():
        predicted = model(inputs).argmax(1)
    critical = torch.zeros(len(inputs), dtype=torch.bool, device=inputs.device)
    moved = inputs.clone()
    for _ in range(rounds):
        moved.requires_grad_(True)
        (slope,) = torch.autograd.grad(F.cross_entropy(model(moved), predicted), moved)
        noise = torch.randn(inputs.shape, device=inputs.device, generator=generator)
        with torch.no_grad():
            change = moved + step * slope.sign() + spread * noise - inputs
            moved = inputs + change.clamp(-radius, radius)
            found = ~critical & (model(moved).argmax(1) != predicted)
        critical |= found
        if int(found.sum()) < fewest:
            break
    model.train(was_training)
    return float(critical.float().mean())
