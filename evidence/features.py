"""Images as the packaged backbone sees them: features, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evidence.labels import confuse, replace_some, weak_mistakes
from evidence.small_images import DRAW_SEED, EXAMPLES, SETS, read
from oddly.data import DataOptions, load_data
from oddly.data.base import LabelledData
from oddly.data.source import ImageSource, ImageTensor
from oddly.engine.build import choose_device
from oddly.engine.embed import embed_images
from oddly.engine.feature_cache import FeatureCache
from oddly.errors import InputError
from oddly.models.backbone import PACKAGED, load_backbone

NOISE_SEED = 7
SIZE = 160  # pixels, in all that is stored of heads on these features; `oddly clean` takes 224 now
HUMAN = ("aggregate", "random1")


@dataclass(frozen=True)
class Features:
    """Images with their true labels, and the ways to label them wrongly."""

    inputs: Tensor
    """float32 (N, 1280)"""
    true: NDArray[np.int64]
    classes: int
    confused: Mapping[int, int]
    human: Mapping[str, NDArray[np.int64]]

    def label(self, kind: str) -> NDArray[np.int64]:
        """clean, aggregate, random1, or with a percentage: uniform, asymmetric, weak."""
        if kind in self.human:
            return self.human[kind]
        if kind == "clean":
            return self.true
        name, percent = kind.split()
        rate, draw = int(percent) / 100, np.random.RandomState(NOISE_SEED)
        if name == "uniform":
            return replace_some(self.true, self.classes, rate, draw)
        if name == "asymmetric":
            return confuse(self.true, self.confused, rate, draw)
        return weak_mistakes(self.inputs, self.true, self.classes, rate)

    def take(self, places: NDArray[np.int64]) -> Features:
        human = {name: labels[places] for name, labels in self.human.items()}
        return replace(self, inputs=self.inputs[places], true=self.true[places], human=human)

    def scaled(self) -> Features:
        """To a mean squared length of 1, as `oddly clean` has them."""
        return replace(self, inputs=self.inputs * self.inputs.square().sum(1).mean().rsqrt())


def embed(images: Tensor, size: int, out: Path) -> Tensor:
    """Features of uint8 images (N, C, H, W) at `size` pixels; kept in `out`."""
    return embed_source(ImageTensor(images, size), out, PACKAGED)


def embed_source(source: ImageSource, out: Path, key: str = f"{PACKAGED} packaged") -> Tensor:
    """Features of images as they come; kept in `out`, where a run beside it finds them."""
    cache, device = FeatureCache(out / "features", key), choose_device("auto")
    load = partial(load_backbone, PACKAGED, "packaged", source.size)
    return embed_images(source, load, device, cache).features.float()


def cifar10(data_dir: Path | None, out: Path, examples: int = 10_000) -> Features:
    """As many of the training images, drawn with a fixed seed."""
    drawn = np.sort(np.random.RandomState(0).permutation(50_000)[:examples])
    human = {}
    for name in HUMAN:
        data = load_data(f"cifar10n:{name}", DataOptions(data_dir=data_dir))
        human[name] = data.train.labels.numpy()[drawn]
    return _features(data.take(torch.from_numpy(drawn)), SIZE, out, human)


def cifar100(data_dir: Path | None, out: Path, examples: int = 20_000) -> Features:
    """The first so many training images at 128 pixels."""
    data = load_data("cifar100", DataOptions(data_dir=data_dir))
    return _features(data.take(torch.arange(examples)), 128, out, {})


def held_out(name: str, folder: Path, out: Path) -> Features:
    """The images that `evidence.held_out` cleans."""
    pixels, true = read(folder)
    drawn = np.random.default_rng(DRAW_SEED).permutation(len(true))[:EXAMPLES]
    inputs = embed(torch.from_numpy(pixels[drawn, None]), SIZE, out / name)
    return Features(inputs, true[drawn], 10, SETS[name].confused, {})


def _features(
    data: LabelledData, size: int, out: Path, human: Mapping[str, NDArray[np.int64]]
) -> Features:
    if data.true_labels is None or data.confused_with is None:
        raise InputError(f"{data.name}: the truth is not known")
    assert isinstance(data.train.images, Tensor)
    inputs = embed(data.train.images, size, out)
    confused = dict(enumerate(data.confused_with))
    return Features(inputs, data.true_labels.numpy(), len(data.class_names), confused, human)
