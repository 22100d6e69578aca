"""Listed image files become `LabelledData`: what image folders and tables share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from oddly.data.base import Augment, DataOptions, LabelledData, Recipe, Split
from oddly.data.images import decode_files
from oddly.data.listing import count, first_few, storable
from oddly.data.transforms import channel_statistics
from oddly.errors import InputError

MEASURED_IMAGES = 500
"""Images, evenly spread, from which mean and deviation are measured."""


@dataclass(frozen=True)
class FileList:
    """The image files of one split, not yet decoded."""

    paths: Sequence[str]
    """Relative to the data root (or absolute), with slashes."""
    labels: Sequence[int]


def load_files(
    name: str,
    root: str,
    class_names: Sequence[str],
    lists: tuple[FileList, FileList | None],
    options: DataOptions,
    notes: Sequence[str],
) -> LabelledData:
    """Decode the training and test files and tell about those that cannot be."""
    if options.image_size < 1:
        raise InputError(f"image size {options.image_size} must be at least 1")
    train_list, test_list = lists
    total = len(train_list.paths) + (len(test_list.paths) if test_list else 0)
    train, bad = _decode(root, train_list, options, 0, total)
    test = None
    if test_list is not None:
        left = options.memory_limit - _bytes_held(train)
        test, bad_test = _decode(root, test_list, options, len(train_list.paths), total, left)
        bad += bad_test
    notes = [*notes, *_about_unreadable(bad, total, options), *_about_classes(class_names, train)]
    if not len(train):
        raise InputError(
            f"{name}: none of its {len(train_list.paths):,} training images can be read"
        )
    mean, std = _measure(train)
    size = options.image_size
    return LabelledData(
        name=name,
        class_names=class_names,
        train=train,
        test=test if test is not None and len(test) else None,
        true_labels=None,
        image_shape=(3, size, size),
        mean=mean,
        std=std,
        augment=Augment(pad=size // 8, flip=True),
        recipe=choose_recipe(len(train)),
        notes=tuple(notes),
    )


def choose_recipe(examples: int) -> Recipe:
    """Few images get a small network and small batches: an epoch must hold steps enough."""
    model = "resnet18" if examples >= 5_000 else "resnet8"
    return Recipe(model, batch_size=max(8, min(128, examples // 20)))


def _decode(
    root: str,
    files: FileList,
    options: DataOptions,
    done: int,
    total: int,
    memory_limit: int | None = None,
) -> tuple[Split, list[str]]:
    """One split without its unreadable files, and those as `path (reason)`."""
    tell = options.progress
    images, unreadable = decode_files(
        root,
        files.paths,
        options.image_size,
        options.memory_limit if memory_limit is None else memory_limit,
        None if tell is None else lambda more: tell(done + more, total),
    )
    labels = torch.tensor(files.labels, dtype=torch.int64)
    ids = _unique_ids(files.paths)
    if unreadable:
        readable = [i for i in range(len(labels)) if i not in unreadable]
        labels, ids = labels[readable], [ids[i] for i in readable]
    bad = [f"{files.paths[i]} ({reason})" for i, reason in unreadable.items()]
    return Split(images, labels, ids), bad


def _unique_ids(paths: Sequence[str]) -> list[str]:
    """The path as id; a path listed again becomes `path#2`, as ids stand for one example each."""
    seen: Counter[str] = Counter()
    ids = []
    for path in paths:
        seen[path] += 1
        ids.append(storable(path) if seen[path] == 1 else f"{storable(path)}#{seen[path]}")
    return ids


def _bytes_held(split: Split) -> int:
    return split.images.numel() if isinstance(split.images, Tensor) else 0


def _about_unreadable(bad: Sequence[str], total: int, options: DataOptions) -> list[str]:
    """A note about the files left out, or the error where the user did not agree to that."""
    if not bad:
        return []
    told = f"{len(bad):,} of {count(total, 'image')} cannot be read: {first_few(bad)}"
    if not options.skip_unreadable:
        raise InputError(f"{told}; use --skip-unreadable to leave them out")
    return [f"{told}; left out"]


def _about_classes(class_names: Sequence[str], train: Split) -> list[str]:
    counts = torch.bincount(train.labels, minlength=len(class_names)).tolist()
    empty = [name for name, number in zip(class_names, counts, strict=True) if not number]
    return [f"classes without a readable training image: {first_few(empty)}"] if empty else []


def _measure(split: Split) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation per channel from some hundreds of images."""
    chosen = range(0, len(split), -(-len(split) // MEASURED_IMAGES))
    return channel_statistics(torch.stack([split.images[i] for i in chosen]))
