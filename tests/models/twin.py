"""A network beside a plain twin of its forward pass."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def check_twin(model: nn.Module, x: Tensor, plain: Callable[..., Tensor]) -> None:
    """Logits and gradients are those of `plain(model, x)`."""
    labels = torch.arange(len(x))
    logits = model(x)
    F.cross_entropy(logits, labels).backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    twin = plain(model, x)
    F.cross_entropy(twin, labels).backward()
    torch.testing.assert_close(logits, twin)
    for gradient, parameter in zip(gradients, model.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad)
