"""Trainings on Fashion-MNIST up to their verdict: ResNet-8, and the head of `oddly clean`."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from evidence.engine_runs import Judged, judge, labelled
from evidence.features import SIZE, embed
from evidence.labels import replace_some
from evidence.small_images import DRAW_SEED, EXAMPLES, SETS, give_labels, read_idx
from oddly.data.base import Augment
from oddly.data.noise import asymmetric
from oddly.engine.embed import features_data

SCRATCH = {"model": "resnet8", "batch_size": 128, "learning_rate": 0.1, "weight_decay": 5e-4}
ONE_WAY = {0: 6, 4: 2, 5: 7, 9: 7}


class FashionMnist:
    """The official training images, read when first needed."""

    def __init__(self, folder: Path, out: Path) -> None:
        self.folder, self.out = folder, out

    @cached_property
    def images(self) -> Tensor:
        """uint8 (60,000, 1, 28, 28)"""
        return torch.tensor(read_idx(self.folder, "train-images-idx3-ubyte"))[:, None]

    @cached_property
    def labels(self) -> Tensor:
        return torch.tensor(read_idx(self.folder, "train-labels-idx1-ubyte")).long()

    @cached_property
    def drawn(self) -> Tensor:
        """Places of those that `evidence.held_out` cleans."""
        draw = np.random.default_rng(DRAW_SEED)
        return torch.from_numpy(draw.permutation(len(self.images))[:EXAMPLES])


def judge_scratch(
    clothes: FashionMnist, kind: str, seed: int, epochs: int, percentile: float | None
) -> Judged:
    """ResNet-8 from scratch, crops and flips."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randperm(len(clothes.images), generator=generator)[:EXAMPLES]
    true = clothes.labels[drawn]
    data = labelled(
        "fashion",
        clothes.images[drawn],
        _flip(true, kind, torch.Generator().manual_seed(100 + seed)),
        true,
        image_shape=(1, 28, 28),
        mean=(0.286,),
        std=(0.353,),
        augment=Augment(pad=2, flip=True),
    )
    return judge(data, percentile, method="odd", seed=seed, epochs=epochs, **SCRATCH)


def _flip(true: Tensor, kind: str, generator: torch.Generator) -> Tensor:
    """uniform, both (ways) or one (way), with a percentage; or clean."""
    if kind == "clean":
        return true
    name, percent = kind.split()
    if name != "uniform":
        called = SETS["fashion"].confused if name == "both" else ONE_WAY
        return asymmetric(
            true, [called.get(k, k) for k in range(10)], int(percent) / 100, generator
        )
    hit = torch.rand(len(true), generator=generator) < int(percent) / 100
    given = true.clone()
    given[hit] = torch.randint(10, (int(hit.sum()),), generator=generator)
    return given


def judge_linear(
    clothes: FashionMnist, kind: str, seed: int, more: int, percentile: float | None
) -> Judged:
    """A linear head as `oddly clean` trains it; `more` % of uniform noise on top."""
    names = SETS["fashion"].classes
    true = clothes.labels[clothes.drawn].numpy()
    given = give_labels(kind, true, SETS["fashion"], seed)
    given = replace_some(given, 10, more / 100, np.random.default_rng(7)) if more else given
    place = np.argsort(np.argsort(names))  # classes are numbered in the order of their names
    inputs = embed(clothes.images[clothes.drawn], SIZE, clothes.out).half()
    numbered = (torch.from_numpy(place[one]) for one in (given, true))
    data = labelled("fashion", inputs, *numbered, image_shape=(1, 1, 1), mean=(0.0,), std=(1.0,))
    return judge(features_data(data, data.train), percentile, method="odd")
