"""ImageNet-2012: ROOT/train/SYNSET/*.JPEG and ROOT/val/SYNSET/*.JPEG; classes: sorted synsets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from oddly.data.base import DataOptions, LabelledData, Recipe, find_folder
from oddly.data.files import FileList
from oddly.data.images import SUFFIXES
from oddly.data.large import load_large
from oddly.errors import InputError

RECIPE = Recipe(model="resnet152", epochs=90, batch_size=256, learning_rate=0.1, weight_decay=1e-4)


def load_imagenet(options: DataOptions) -> LabelledData:
    """Both splits; all labels are assumed to be right, as is usual."""
    root = find_folder("imagenet", options)
    synsets = find_synsets(root, "train")
    lists = (list_synsets(root, "train", synsets), list_synsets(root, "val", synsets))
    data = load_large("imagenet", root, synsets, lists, options, RECIPE)
    return replace(data, true_labels=data.train.labels)


def find_synsets(root: Path, split: str) -> list[str]:
    """The class folders of a split."""
    try:
        names = sorted(entry.name for entry in os.scandir(root / split) if entry.is_dir())
    except OSError:
        raise InputError(
            f"{root / split} is missing; set --data-dir to the folder that contains"
            f" imagenet/{split}/SYNSET/"
        ) from None
    if len(names) < 2:
        raise InputError(f"{root / split} contains no class folders (n01440764/ …)")
    return names


def list_synsets(root: Path, split: str, synsets: Sequence[str]) -> FileList:
    """All images of a split in the order of the classes."""
    paths, labels = [], []
    for k, synset in enumerate(synsets):
        folder = root / split / synset
        names = sorted(os.listdir(folder)) if folder.is_dir() else []
        found = [name for name in names if os.path.splitext(name)[1].lower() in SUFFIXES]
        paths += [f"{split}/{synset}/{name}" for name in found]
        labels += [k] * len(found)
    if not paths:
        raise InputError(f"{root / split} contains no images")
    return FileList(paths, labels)
