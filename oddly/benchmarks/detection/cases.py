"""The data of the comparison, most valuable first, and how each is trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from oddly.data import DataOptions, add_noise, load_data
from oddly.data.base import Augment, LabelledData, Recipe, Split
from oddly.engine.build import choose_device
from oddly.engine.embed import embed_data
from oddly.errors import InputError
from oddly.models.backbone import PACKAGED, load_backbone

THIRTY_EPOCHS = Recipe(
    model="resnet18", epochs=30, batch_size=128, learning_rate=0.1, weight_decay=5e-4
)
"""One recipe for every case with a ResNet: SGD with Nesterov momentum, a cosine schedule."""
LAYER_NORM = replace(THIRTY_EPOCHS, model="convnextv2_atto", learning_rate=0.05)
"""Half the learning rate, because at 0.1 the loss rose at first. ConvNeXt version 2, because the
layer scale of 1e-6 in version 1 nearly stops SGD."""
FEATURE_SIZE = 160  # pixels a side
SMALL = Recipe(model="resnet8", epochs=12, batch_size=64, learning_rate=0.1, weight_decay=5e-4)


@dataclass(frozen=True)
class Case:
    """Labels to judge. The truth is known in every case."""

    name: str
    data: str
    """A name of `oddly.data.DATASETS`."""
    noise: float = 0.0
    """Share of labels to corrupt; 0: the labels as they are."""
    noise_kind: str = "uniform"
    recipe: Recipe | None = THIRTY_EPOCHS
    """None: the data's own."""
    warmup: float = 0.0
    """Epochs over which the learning rate rises; networks without batch norm need some."""
    enlarge: int = 1
    """Factor to enlarge images by, for a network with a coarse first layer."""
    examples: int | None = None
    """Use only this many training (and test) examples, the first ones."""
    frozen: bool = False
    """A head trains on features of the packaged backbone; there is no test set then."""


def _synthetic(data: str) -> list[Case]:
    noisy = [
        Case(f"{data}-{kind}-{round(100 * rate)}", data, rate, kind)
        for kind in ("uniform", "asymmetric", "instance")
        for rate in (0.4, 0.2)
    ]
    return [*noisy, Case(f"{data}-clean", data)]


_ALL = [
    *_synthetic("cifar10"),
    *_synthetic("cifar100"),
    Case("cifar10n-aggregate", "cifar10n:aggregate"),
    Case("cifar10n-random1", "cifar10n:random1"),
    Case("digits-uniform-40", "digits", 0.4, recipe=None),
    Case(
        "cifar10n-aggregate-features",
        "cifar10n:aggregate",
        recipe=None,
        examples=10_000,
        frozen=True,
    ),
    Case("cifar10-uniform-40-layernorm", "cifar10", 0.4, recipe=LAYER_NORM, warmup=1, enlarge=2),
]
_FIRST = (
    *("cifar10-uniform-40", "cifar10n-aggregate", "cifar10-asymmetric-40", "cifar100-uniform-40"),
    *("cifar10-instance-40", "cifar10n-random1", "cifar100-clean"),
    *("cifar10-uniform-40-layernorm", "digits-uniform-40", "cifar10n-aggregate-features"),
)
CASES = {
    case.name: case
    for case in sorted(_ALL, key=lambda c: _FIRST.index(c.name) if c.name in _FIRST else 99)
}
"""In the order in which `--next` fills them."""

SMALL_CASES = {
    case.name: case
    for case in (
        Case("small-digits-uniform-40", "digits", 0.4, recipe=SMALL),
        Case("small-digits-instance-40", "digits", 0.4, "instance", recipe=SMALL),
    )
}
"""`--small`: minutes of a CPU become seconds, and nothing has to be downloaded."""


@lru_cache(maxsize=1)  # a worker usually trains several jobs of a case in a row
def load_case(case: Case, seed: int, data_dir: Path | None = None) -> LabelledData:
    """The data of a case with its given labels."""
    data = load_data(case.data, DataOptions(data_dir=data_dir))
    if case.examples is not None:
        data = _first(data, case.examples)
    if case.noise:
        generator = torch.Generator().manual_seed(seed)
        data = add_noise(data, case.noise_kind, case.noise, generator)
    if data.true_labels is None:
        raise InputError(f"{case.name}: the true labels of {case.data} are unknown")
    if case.frozen:
        return _embed(replace(data, test=None))
    return _enlarge(data, case.enlarge) if case.enlarge > 1 else data


def _embed(data: LabelledData) -> LabelledData:
    """Features for images, as `oddly clean` makes them by default."""
    device = choose_device("auto")
    backbone = load_backbone(PACKAGED, "packaged", FEATURE_SIZE)
    return embed_data(data, backbone, FEATURE_SIZE, device, skip_unreadable=False)


def _first(data: LabelledData, number: int) -> LabelledData:
    """The first `number` examples of each split."""
    test = data.test and data.test.take(torch.arange(min(number, len(data.test))))
    return replace(data.take(torch.arange(min(number, len(data.train)))), test=test)


def _enlarge(data: LabelledData, factor: int) -> LabelledData:
    """Enlarge the images by `factor`, and shift crops further accordingly."""
    channels, height, width = data.image_shape
    return replace(
        data,
        train=_enlarge_split(data.train, factor),
        test=data.test and _enlarge_split(data.test, factor),
        image_shape=(channels, factor * height, factor * width),
        augment=Augment(pad=factor * data.augment.pad, flip=data.augment.flip),
    )


def _enlarge_split(split: Split, factor: int) -> Split:
    assert isinstance(split.images, Tensor)
    parts = [
        interpolate(part.float(), scale_factor=factor, mode="bilinear").round().to(torch.uint8)
        for part in split.images.split(5_000)  # floats of all at once would not fit
    ]
    return replace(split, images=torch.cat(parts))
