"""Short trainings with another number of planted labels: few images, heads on features, digits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch

import oddly
from evidence.features import Features
from evidence.labels import Labels, replace_some
from oddly.core.sentinels import planting
from oddly.data import DataOptions, load_data
from oddly.data.base import LabelledData, Split
from oddly.engine.embed import head_recipe
from oddly.records import Run

RESNET, HEAD, WRN = "ResNet-8", "head on features", "WRN-10-2"
SCRATCH = {
    "model": "resnet8",
    "epochs": 12,
    "batch_size": 128,
    "learning_rate": 0.1,
    "weight_decay": 5e-4,
}
NOISE = {"uniform 20 %": 0.2, "uniform 40 %": 0.4, "CIFAR-10N aggregate": 0.0, "clean": 0.0}
TEST_FROM = 8_000  # of 10,000 images with features; the rest are for the test


@contextmanager
def planting_at_least(number: int) -> Iterator[None]:
    """At least so many labels are planted, not 300; never more than a tenth."""
    usual = planting.FEWEST
    planting.FEWEST = number
    try:
        yield
    finally:
        planting.FEWEST = usual


class Trainer:
    """The data, loaded once, and one training on it."""

    def __init__(self, load_features: Callable[[], Features], options: DataOptions) -> None:
        self.load_features = load_features
        self.load_cifar = cache(partial(load_data, "cifar10", options))

    @contextmanager
    def train(
        self, network: str, examples: int, kind: str, planted: int, seed: int, **asked: Any
    ) -> Iterator[Run]:
        """The run, there as long as it is looked at."""
        noise = NOISE[kind]
        data: LabelledData | str = "digits"
        if network == HEAD:
            data, noise = self.head_data(examples, kind, seed), 0.0  # it is in the data already
        elif network.startswith(RESNET):
            data, asked = self.first(examples), {**SCRATCH, **asked}
        asked |= {"method": "odd" if planted else "erm", "noise": noise}
        with planting_at_least(planted), tempfile.TemporaryDirectory() as folder:
            yield oddly.train(data, folder, overwrite=True, device="cpu", seed=seed, **asked)

    def first(self, examples: int) -> LabelledData:
        data = self.load_cifar()
        assert data.test is not None
        test = data.test.take(torch.arange(4_000))
        return replace(data.take(torch.arange(examples)), test=test)

    def head_data(self, examples: int, kind: str, seed: int) -> LabelledData:
        """Other images, noise and order with each seed."""
        images = self.load_features()
        order = np.random.RandomState(seed).permutation(len(images.true))
        train, rest = images.take(order[:examples]), images.take(order[TEST_FROM:])
        given = replace_some(train.true, 10, NOISE[kind], np.random.RandomState(100 + seed))
        if kind == "CIFAR-10N aggregate":
            given = train.human["aggregate"]
        return LabelledData(
            name="features",
            class_names=[str(k) for k in range(10)],
            train=_split(train, given),
            test=_split(rest, rest.true) if examples <= TEST_FROM else None,
            true_labels=torch.from_numpy(train.true),
            image_shape=(train.inputs.shape[1], 1, 1),
            mean=(0.0,),
            std=(1.0,),
            recipe=head_recipe(examples, 10),
        )


def _split(images: Features, labels: Labels) -> Split:
    names = [str(place) for place in range(len(labels))]
    return Split(images.inputs.half(), torch.from_numpy(labels), names)
