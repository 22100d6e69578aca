"""Datasets by name, by folder, by table; label noise; what happens to a batch of images."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from oddly.data.base import Augment, DataOptions, LabelledData, Recipe, Split
from oddly.data.cifar import load_cifar10, load_cifar100
from oddly.data.cifar_n import HUMAN_LABELS, load_cifar_n
from oddly.data.clothing1m import SETTINGS, load_clothing1m
from oddly.data.digits import load_digits
from oddly.data.huggingface import is_huggingface, load_huggingface
from oddly.data.image_folder import load_image_folder
from oddly.data.imagenet import load_imagenet
from oddly.data.labels import replace_labels
from oddly.data.merged_cifar import MERGED, load_merged_cifar
from oddly.data.noise import NOISES, add_noise, error_rate
from oddly.data.synthetic import synthetic
from oddly.data.table import load_table
from oddly.data.transforms import augment, normalise
from oddly.data.webvision import load_webvision
from oddly.errors import InputError, shown, unknown_name
from oddly.text_table import SUFFIXES

DATASETS: dict[str, Callable[[DataOptions], LabelledData]] = {
    "digits": load_digits,
    "cifar10": load_cifar10,
    "cifar100": load_cifar100,
    **{name: partial(load_cifar_n, name) for name in HUMAN_LABELS},
    **{name: partial(load_merged_cifar, name) for name in MERGED},
    "imagenet": load_imagenet,
    "webvision": partial(load_webvision, False),
    "webvision:mini": partial(load_webvision, True),
    **{f"clothing1m:{setting}": partial(load_clothing1m, setting) for setting in SETTINGS},
    "synthetic": lambda options: synthetic(),
}


def load_data(source: str, options: DataOptions) -> LabelledData:
    """A dataset by its name, else an image folder, else a table of paths and labels."""
    if source in DATASETS:
        return DATASETS[source](options)
    if source == "cifar10n":  # "did you mean cifar100n?" would mislead
        choices = ", ".join(name for name in DATASETS if name.startswith("cifar10n:"))
        raise InputError(f"cifar10n has several sets of labels; choose one: {choices}")
    path = Path(os.path.expanduser(source))
    if source and os.path.isdir(path):  # Path.is_dir raises if the name is too long
        load = load_huggingface if is_huggingface(path) else load_image_folder
        return load(path, options)
    if os.path.isfile(path):
        return _load_file(path, options)
    if "/" in source or source.startswith((".", "~")) or path.suffix.lower() in SUFFIXES:
        raise InputError(f"{shown(source)}: no such file or folder")
    unknown = unknown_name("dataset", shown(source), DATASETS)
    raise InputError(f"{unknown} (and no such file or folder exists)")


def _load_file(path: Path, options: DataOptions) -> LabelledData:
    if is_huggingface(path):
        return load_huggingface(path, options)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{shown(str(path))} is neither an image folder nor a {' or '.join(SUFFIXES)} table"
        )
    return load_table(path, options)


__all__ = [
    "DATASETS",
    "NOISES",
    "Augment",
    "DataOptions",
    "LabelledData",
    "Recipe",
    "Split",
    "add_noise",
    "augment",
    "error_rate",
    "load_data",
    "load_image_folder",
    "load_table",
    "normalise",
    "replace_labels",
    "synthetic",
]
