"""Dropout whose randomness costs a byte an element: in a compiled step, next to nothing."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

LEVELS = 256  # of a byte


class ByteDropout(nn.Dropout):
    """`nn.Dropout`; on a GPU, for channels-last images, its rate is rounded: .3 is 77 / 256.

    Compiled, the original draws a float for every element and spends an eighth of a WRN-28-10's
    step on that. What is kept is scaled by the rounded rate, so the mean stays. Not for modules
    that are called twice in a step, nor under activation checkpointing: a compiler takes two draws
    of one `layer` for the same.
    """

    def __init__(self, p: float, layer: int) -> None:
        super().__init__(p)
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        dropped = round(self.p * LEVELS)
        cheaper = x.is_cuda and x.is_contiguous(memory_format=torch.channels_last)
        if not self.training or not cheaper or not 0 < dropped < LEVELS:
            return super().forward(x)
        return drop(x, dropped, self.layer)


def drop(x: Tensor, dropped: int, layer: int) -> Tensor:
    """`x` (B, C, H, W) without so many 256ths of it, and the rest as much larger."""
    keep = random_bytes(x.shape, x.device, layer) >= dropped
    return torch.where(keep, x * (LEVELS / (LEVELS - dropped)), 0)


@torch.library.custom_op("oddly::random_bytes", mutates_args=())
def random_bytes(shape: Sequence[int], device: torch.device, layer: int) -> Tensor:
    """uint8 of this shape, channels last, from the device's own stream.

    An operation of its own, since a compiler would draw them anew wherever they are read. `layer`
    tells calls of one shape apart, which it would take for one.
    """
    batch, channels, height, width = shape
    number = batch * channels * height * width
    words = torch.empty(-(-number // 8), dtype=torch.int64, device=device)
    words.random_(-(2**63), None)  # to None: all 64 bits
    drawn = words.view(torch.uint8)[:number]
    return drawn.view(batch, height, width, channels).permute(0, 3, 1, 2)


@random_bytes.register_fake
def _(shape: Sequence[int], device: torch.device, layer: int) -> Tensor:
    batch, channels, height, width = shape
    drawn = torch.empty((batch, height, width, channels), dtype=torch.uint8, device=device)
    return drawn.permute(0, 3, 1, 2)
