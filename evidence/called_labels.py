"""The labels of called.json: classes that are called another, on features and on digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evidence.common_mean import see
from evidence.engine_runs import labelled
from evidence.folders import nearest
from evidence.labels import Labels, confuse, replace_some
from evidence.recorded_cases import Loads
from evidence.small_trial import Folders
from evidence.valley import load as load_digits
from oddly.data.base import LabelledData
from oddly.engine.embed import features_data

DIGITS = {"one": {7: 1}, "three": {3: 8, 4: 9, 7: 1}, "both ways": {3: 8, 8: 3, 4: 9, 9: 4}}


def give(kind: str, true: Labels, alike: Mapping[int, int], seed: int) -> Labels:
    if kind == "clean":
        return true
    name, _, percent = kind.rpartition(" ")
    rate, draw, classes = int(percent) / 100, np.random.default_rng(300 + seed), len(alike)
    if name == "uniform":
        return replace_some(true, classes, rate, draw)
    number = {"one": 1, "half": classes // 2, "both ways": 2}[name]
    called = {k: alike[k] for k in draw.permutation(classes)[:number].tolist()}
    if name == "both ways":
        called |= {other: k for k, other in called.items()}
    return confuse(true, called, rate, draw)


def label_features(inputs: Tensor, given: Labels, true: Labels, classes: int) -> LabelledData:
    """As `oddly clean` has them."""
    labels, truth = torch.from_numpy(given), torch.from_numpy(true)
    shape = (inputs.shape[1], 1, 1)
    known: dict[str, Any] = {"classes": classes, "image_shape": shape, "mean": (0,), "std": (1,)}
    data = labelled("features", inputs.half(), labels, truth, **known)
    return features_data(data, data.train)


def label_set(
    name: str, kind: str, folders: Folders, others: Path, out: Path, seed: int
) -> LabelledData:
    features, true, classes = see(name, folders, others, out)
    alike = dict(enumerate(nearest(features.numpy(), true, classes).tolist()))
    return label_features(features, give(kind, true, alike, seed), true, classes)


def label_cifar10(kind: str, loads: Loads, seed: int) -> LabelledData:
    images = loads["cifar10"]()
    return label_features(images.inputs, images.label(kind), images.true, images.classes)


def label_digits(kind: str, seed: int) -> LabelledData:
    name, _, percent = kind.rpartition(" ")
    if name not in DIGITS:
        return load_clean() if kind == "clean" else load_digits(name, int(percent), seed)
    data = load_clean()
    draw, true = np.random.default_rng(300 + seed), data.train.labels
    given = confuse(true.numpy(), DIGITS[name], int(percent) / 100, draw)
    return data.with_given_labels(torch.from_numpy(given))


def load_clean() -> LabelledData:
    data = load_digits("clean", 0, 0)
    return replace(data, true_labels=data.train.labels)
