"""Label noise as pure functions: labels, rate and generator → given labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Generator, Tensor
from torch.nn.functional import adaptive_avg_pool2d
from torch.utils.data import Dataset

from oddly.data.base import LabelledData
from oddly.errors import InputError, unknown_name

INSTANCE_SPREAD = 0.1
"""Standard deviation of the per-example flip rate of `instance` noise."""
PROJECTED_SIDE = 32
"""Larger images are averaged down to this side before `instance` noise projects them."""
CHUNK = 2**24
"""Floats of pixels held at once by `instance` noise."""


def uniform(labels: Tensor, num_classes: int, rate: float, generator: Generator) -> Tensor:
    """The paper's: round(rate N) examples get a uniform draw over all K, the true one included.

    The realised error rate is therefore about rate (1 - 1/K).
    """
    chosen = _choose(len(labels), rate, generator)
    given = labels.clone()
    given[chosen] = torch.randint(num_classes, (len(chosen),), generator=generator)
    return given


def uniform_other(labels: Tensor, num_classes: int, rate: float, generator: Generator) -> Tensor:
    """round(rate N) examples get a uniform draw over the K - 1 other classes."""
    _need_two_classes("uniform_other", num_classes)
    chosen = _choose(len(labels), rate, generator)
    shift = torch.randint(1, num_classes, (len(chosen),), generator=generator)
    given = labels.clone()
    given[chosen] = (labels[chosen] + shift) % num_classes
    return given


def pair(labels: Tensor, num_classes: int, rate: float, generator: Generator) -> Tensor:
    """round(rate N) examples get the label after theirs, k + 1 (mod K)."""
    _need_two_classes("pair", num_classes)
    chosen = _choose(len(labels), rate, generator)
    given = labels.clone()
    given[chosen] = (labels[chosen] + 1) % num_classes
    return given


def asymmetric(
    labels: Tensor, confused_with: Sequence[int], rate: float, generator: Generator
) -> Tensor:
    """Each example of class k gets the label confused_with[k] with probability `rate`.

    If a class is confused with itself, nothing changes, so the error rate can be below `rate`.
    """
    flipped = torch.rand(len(labels), generator=generator) < rate
    return torch.where(flipped, torch.as_tensor(confused_with)[labels], labels)


def asymmetric_blocks(
    labels: Tensor, num_classes: int, rate: float, generator: Generator
) -> Tensor:
    """Patrini's: the next class within blocks of 5 consecutive classes; after the last, the first.

    On CIFAR-100 these blocks are alphabetical; for super-classes, use `asymmetric`.
    """
    if num_classes % 5:
        raise InputError(
            f"noise asymmetric_blocks needs a multiple of 5 classes, got {num_classes}"
        )
    classes = torch.arange(num_classes)
    next_in_block = classes - classes % 5 + (classes + 1) % 5
    return asymmetric(labels, next_in_block.tolist(), rate, generator)


def instance(
    labels: Tensor,
    num_classes: int,
    rate: float,
    generator: Generator,
    images: Tensor | Dataset[Tensor],
    mean: Sequence[float],
    std: Sequence[float],
) -> Tensor:
    """Noise that depends on the picture: x gets the label j with probability softmax_j(x W_y).

    Each example flips with its own rate, a normal draw around `rate` (deviation 0.1) clamped to
    0..1. W_y is a standard normal projection of the normalised pixels for each class y; the true
    class is left out. With rate 0 there is no noise, although the clamped normal would leave some.
    """
    _need_two_classes("instance", num_classes)
    if rate == 0:
        return labels.clone()
    rates = torch.empty(len(labels)).normal_(rate, INSTANCE_SPREAD, generator=generator).clamp(0, 1)
    flipped = torch.rand(len(labels), generator=generator) < rates
    given = labels.clone()
    for k in range(num_classes):  # one projection at a time, as all K together may be large
        chosen = torch.nonzero(flipped & (labels == k)).flatten()
        projection: Tensor | None = None
        for part in _chunks(chosen, images):
            pixels = _pixels(images, part, mean, std)  # (n, D)
            if projection is None:
                projection = torch.randn(pixels.shape[1], num_classes, generator=generator)
            logits = pixels @ projection
            logits[:, k] = -torch.inf
            draws = torch.multinomial(logits.softmax(1), 1, generator=generator)
            given[part] = draws.flatten()
    return given


def _choose(number: int, rate: float, generator: Generator) -> Tensor:
    """Exactly round(rate N) indices, without repetition."""
    return torch.randperm(number, generator=generator)[: round(rate * number)]


def _need_two_classes(kind: str, num_classes: int) -> None:
    if num_classes < 2:
        raise InputError(f"noise {kind} needs at least two classes, got {num_classes}")


def _chunks(chosen: Tensor, images: Tensor | Dataset[Tensor]) -> Sequence[Tensor]:
    """The chosen indices in pieces whose decoded pixels fit CHUNK floats."""
    if not len(chosen):
        return []
    step = max(1, CHUNK // images[int(chosen[0])].numel())
    return [chosen[i : i + step] for i in range(0, len(chosen), step)]


def _pixels(
    images: Tensor | Dataset[Tensor], chosen: Tensor, mean: Sequence[float], std: Sequence[float]
) -> Tensor:
    """Normalised pixels (n, D) of the chosen images, which may have to be decoded first."""
    if isinstance(images, Tensor):
        pixels = images[chosen].float()
    else:
        pixels = torch.stack([images[i] for i in chosen.tolist()]).float()
    height, width = (min(PROJECTED_SIDE, side) for side in pixels.shape[2:])
    pixels = adaptive_avg_pool2d(pixels, (height, width))  # changes nothing up to that side
    channels = (1, -1, 1, 1)
    pixels = (pixels / 255 - torch.tensor(mean).view(channels)) / torch.tensor(std).view(channels)
    return pixels.flatten(1)


def _asymmetric_of(data: LabelledData, rate: float, generator: Generator) -> Tensor:
    if data.confused_with is None:
        raise InputError(
            f"noise asymmetric is not defined for {data.name}, which does not say which classes"
            " get confused; use pair or asymmetric_blocks"
        )
    return asymmetric(data.train.labels, data.confused_with, rate, generator)


def _instance_of(data: LabelledData, rate: float, generator: Generator) -> Tensor:
    train, classes = data.train, len(data.class_names)
    if train.holds_features:
        raise InputError(f"noise instance needs images, but {data.name} contains features")
    return instance(train.labels, classes, rate, generator, train.images, data.mean, data.std)


def _from_labels(
    noise: Callable[[Tensor, int, float, Generator], Tensor],
) -> Callable[[LabelledData, float, Generator], Tensor]:
    """A noise that needs labels only, called with a whole dataset like the others."""
    return lambda data, rate, generator: noise(
        data.train.labels, len(data.class_names), rate, generator
    )


NOISES: dict[str, Callable[[LabelledData, float, Generator], Tensor]] = {
    "uniform": _from_labels(uniform),
    "uniform_other": _from_labels(uniform_other),
    "pair": _from_labels(pair),
    "asymmetric": _asymmetric_of,
    "asymmetric_blocks": _from_labels(asymmetric_blocks),
    "instance": _instance_of,
}


def add_noise(data: LabelledData, kind: str, rate: float, generator: Generator) -> LabelledData:
    """The data with noisy given labels; if true labels are unknown, the labels before count."""
    if kind not in NOISES:
        raise unknown_name("noise", kind, NOISES)
    if not 0 <= rate <= 1:  # NaN fails this too
        raise InputError(f"noise must be within 0..1, got {rate}")
    truth = data.train.labels if data.true_labels is None else data.true_labels
    labels = NOISES[kind](data, rate, generator)
    if data.decided is not None:  # labels that a person confirmed must stay as they are
        labels = torch.where(data.decided, data.train.labels, labels)
    return replace(data.with_given_labels(labels), true_labels=truth)


def error_rate(data: LabelledData) -> float | None:
    """The share of training examples with a wrong given label; None if unknown."""
    if data.true_labels is None or not len(data.train):
        return None
    return float((data.train.labels != data.true_labels).double().mean())
