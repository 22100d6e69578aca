"""Small data for the scripts: blobs for features, official files made of digits."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import interpolate

from evidence.features import Features
from oddly.data import DataOptions, load_data


def blobs(examples: int, classes: int = 10, size: int = 24) -> Features:
    """Features of classes that a linear layer tells apart; people err in a tenth."""
    draw = np.random.default_rng(0)
    true = draw.integers(0, classes, examples)
    inputs = 2 * draw.normal(size=(classes, size))[true] + draw.normal(size=(examples, size))
    human = np.where(draw.random(examples) < 0.1, (true + 1) % classes, true)
    confused = {k: (k + 1) % classes for k in range(classes)}
    names = ("aggregate", "random1")
    people = dict.fromkeys(names, human)
    return Features(torch.from_numpy(inputs).float(), true, classes, confused, people)


def write_official(folder: Path, images: int) -> None:
    """Digits at 28 pixels, in the official format."""
    digits = load_data("digits", DataOptions()).train
    assert isinstance(digits.images, torch.Tensor)
    large = interpolate(digits.images[:images].float(), (28, 28), mode="bilinear")
    pixels = large.round().to(torch.uint8)[:, 0].numpy()
    labels = digits.labels[:images].to(torch.uint8).numpy()
    for name, array in (("train-images-idx3-ubyte", pixels), ("train-labels-idx1-ubyte", labels)):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
        (folder / f"{name}.gz").write_bytes(gzip.compress(head + array.tobytes()))
