"""Tiny pictures that a tiny network learns in seconds; for tests and dry runs."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from oddly.data.base import Augment, LabelledData, Recipe, Split


def synthetic(
    num_classes: int = 3,
    per_class: int = 40,
    size: int = 8,
    seed: int = 0,
    *,
    channels: int = 3,
    test_per_class: int = 20,
    spread: float = 40.0,
) -> LabelledData:
    """One random picture per class, and examples that are that picture plus noise (grey levels)."""
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.randint(40, 216, (num_classes, channels, size, size), generator=generator)
    train = _draw("train", patterns, per_class, spread, generator)
    return LabelledData(
        name="synthetic",
        class_names=[f"class {k}" for k in range(num_classes)],
        train=train,
        test=_draw("test", patterns, test_per_class, spread, generator),
        true_labels=train.labels,
        image_shape=(channels, size, size),
        mean=(0.5,) * channels,
        std=(0.25,) * channels,
        augment=Augment(pad=0, flip=False),
        recipe=Recipe(model="resnet8", epochs=10, batch_size=32, learning_rate=0.05),
    )


def _draw(
    name: str, patterns: Tensor, per_class: int, spread: float, generator: Generator
) -> Split:
    """`per_class` noisy copies of each pattern, shuffled."""
    labels = torch.arange(len(patterns)).repeat_interleave(per_class)
    labels = labels[torch.randperm(len(labels), generator=generator)]
    images = patterns[labels].float()
    images += spread * torch.randn(images.shape, generator=generator)
    ids = [f"{name}/{i:05d}" for i in range(len(labels))]
    return Split(images.round().clamp(0, 255).to(torch.uint8), labels, ids)
