"""Transforms of a batch of uint8 images on the training device: crop, flip, normalise, blank.

B images, C channels, H x W pixels. No loop over images, no host sync.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Generator, Tensor
from torch.nn.functional import affine_grid, grid_sample, pad

from oddly.data.base import Augment

LOG_ASPECT = math.log(4 / 3)  # the usual range of shapes, 3:4 to 4:3


def augment(images: Tensor, how: Augment, generator: Generator) -> Tensor:
    """Crop the padded image at random and mirror it at random, independently for each image.

    The generator must be on the device of the images.
    """
    if how.crop:
        return _cut_out(images, how, generator)
    if not how.pad and not how.flip:
        return images
    b, c, h, w = images.shape
    device = images.device
    rows = torch.arange(h, device=device).expand(b, h)
    columns = torch.arange(w, device=device).expand(b, w)
    if how.flip:
        mirrored = torch.rand(b, 1, generator=generator, device=device) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    if how.pad:
        corner = torch.randint(2 * how.pad + 1, (2, b, 1), generator=generator, device=device)
        rows, columns = rows + corner[0], columns + corner[1]
        if how.reflect:
            rows, columns = _fold(rows - how.pad, h), _fold(columns - how.pad, w)
        else:
            images = pad(images, (how.pad,) * 4)
    # One flat gather per channel: five times faster on CPU than indexing with four tensors.
    place = rows[:, :, None] * images.shape[3] + columns[:, None, :]  # (B, H, W)
    place = place.view(b, 1, h * w).expand(b, c, h * w)
    return images.flatten(2).gather(2, place).view(b, c, h, w)


def _fold(places: Tensor, length: int) -> Tensor:
    """Map positions beyond the line 0 … length - 1 into it, as if mirrored at its ends."""
    last = max(length - 1, 1)
    folded: Tensor = last - (last - places.remainder(2 * last)).abs()
    return folded.clamp(max=length - 1)  # for a length of 1


def centre(images: Tensor, side: int) -> Tensor:
    """The square of `side` pixels in the middle."""
    top, left = ((length - side) // 2 for length in images.shape[2:])
    return images[:, :, top : top + side, left : left + side]


def _cut_out(images: Tensor, how: Augment, generator: Generator) -> Tensor:
    """Random crops of a fixed size, or of random area and shape, resized bilinearly."""
    b, _, h, w = images.shape
    device = images.device

    def draw(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(b, generator=generator, device=device)

    height, width = (torch.full((b,), how.crop / length, device=device) for length in (h, w))
    if how.area is not None:
        area, stretch = draw(*how.area).sqrt(), (draw(-LOG_ASPECT, LOG_ASPECT) / 2).exp()
        height, width = (area / stretch).clamp(max=1), (area * stretch).clamp(max=1)
    # In grid_sample's terms the image reaches from -1 to 1: half-lengths, then centres.
    y, x = (1 - height) * draw(-1, 1), (1 - width) * draw(-1, 1)
    mirror = torch.where(draw(0, 1) < 0.5, -1.0, 1.0) if how.flip else torch.ones_like(x)
    zero = torch.zeros_like(x)
    rows = [torch.stack((mirror * width, zero, x), 1), torch.stack((zero, height, y), 1)]
    size = [b, images.shape[1], how.crop, how.crop]
    grid = affine_grid(torch.stack(rows, 1), size, align_corners=False)
    cut = grid_sample(images.float(), grid, padding_mode="reflection", align_corners=False)
    return cut.round_().clamp_(0, 255).to(torch.uint8)


def normalise(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """uint8 (B, C, H, W) to float32 with mean 0 and deviation 1 per channel."""
    scale, shift = _scale_and_shift(tuple(mean), tuple(std), images.device)
    return images.to(torch.float32) * scale + shift


@lru_cache(maxsize=16)
def _scale_and_shift(
    mean: tuple[float, ...], std: tuple[float, ...], device: torch.device
) -> tuple[Tensor, Tensor]:
    """Cached, because copying even six numbers to a GPU in each step makes the host wait."""
    with torch.inference_mode(False):  # training cannot use a cached inference tensor
        deviation = torch.tensor(std, dtype=torch.float64).view(-1, 1, 1)
        centre = torch.tensor(mean, dtype=torch.float64).view(-1, 1, 1)
        scale, shift = 1 / (255 * deviation), -centre / deviation
        return scale.float().to(device), shift.float().to(device)


def blank(images: Tensor, side: int, generator: Generator) -> Tensor:
    """Set a square at a random place in each normalised image to the mean, which is 0.

    Cutout (DeVries & Taylor, 2017): the centre is any pixel, so part of a square may lie outside.
    """
    b, _, h, w = images.shape

    def inside(length: int) -> Tensor:  # (B, length)
        centre = torch.randint(length, (b, 1), generator=generator, device=images.device)
        after = torch.arange(length, device=images.device) - (centre - side // 2)
        return (after >= 0) & (after < side)

    square = inside(h)[:, :, None] & inside(w)[:, None, :]  # (B, H, W)
    return images.masked_fill(square[:, None], 0.0)


def channel_statistics(images: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation per channel of uint8 (N, C, H, W), on the 0..1 scale."""
    # Counting the 256 grey levels is exact and needs no float copy of all pixels.
    counts = torch.stack([torch.bincount(c.flatten(), minlength=256) for c in images.unbind(1)])
    share = counts.double() / counts.sum(1, keepdim=True)  # (C, 256)
    level = torch.arange(256, dtype=torch.float64) / 255
    mean = share @ level
    variance = (share * (level - mean[:, None]) ** 2).sum(1)
    # At least one grey level, so that a constant channel does not divide by 0.
    std = variance.sqrt().clamp(min=1 / 255)
    return tuple(mean.tolist()), tuple(std.tolist())
