"""Make `LabelledData` from listed images: shared by image folders, tables and Hugging Face."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.utils.data import Dataset

from oddly.data.base import Augment, DataOptions, LabelledData, Recipe, Split
from oddly.data.listing import storable
from oddly.data.source import ImageFiles, ImageSource, decode_files, short_side
from oddly.data.transforms import channel_statistics
from oddly.errors import InputError, count, first_few

MEASURED_IMAGES = 500
"""Number of images, evenly spread, from which mean and deviation are measured."""
Unread = tuple[str, str]
"""The id of an image that cannot be read, and why."""
NAMED = 3
"""Number of unreadable images to name, with their reasons."""
SHRUNK = 2
"""If images are at least this many times larger than `image_size`, a note says so."""
MANY = 20_000
"""From this many images on, a network trained from scratch does well."""
UNMEASURED = (0.5, 0.5, 0.5)
"""Mean and deviation for images that are only listed, not decoded."""


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
    """Load the listed files below `root`; see `load_images`."""
    train = _list_files(root, lists[0], options)
    test = _list_files(root, lists[1], options) if lists[1] else None
    return load_images(name, class_names, (train, test), options, notes)


def load_images(
    name: str,
    class_names: Sequence[str],
    splits: tuple[Split, Split | None],
    options: DataOptions,
    notes: Sequence[str],
) -> LabelledData:
    """Decode the listed training and test images, with notes about unreadable ones."""
    if options.image_size < 1:
        raise InputError(f"image size must be at least 1, got {options.image_size}")
    train, test = splits
    bad: list[Unread] = []
    if options.decode:
        notes = [*notes, *about_size(train.images, options.image_size, options.from_scratch)]
        train, test, bad = _decode_both(name, splits, options)
        total = len(splits[0]) + (len(splits[1]) if splits[1] else 0)
        notes = [*notes, *about_unreadable(bad, total, options.skip_unreadable)]
    notes = [*notes, *_about_classes(class_names, train)]
    mean, std = measure(train) if options.decode else (UNMEASURED, UNMEASURED)
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
        unread=[id for id, _ in bad],
    )


def about_size(images: Tensor | Dataset[Tensor], size: int, from_scratch: bool) -> list[str]:
    """A note that images are much larger than `size`, if they are."""
    if not isinstance(images, ImageSource):
        return []
    side = short_side(images)
    if side is None or side < SHRUNK * size:
        return []
    note = f"resizing images of {side:,} px to {size} px (--image-size)"
    if from_scratch and len(images) < MANY:
        note += "; for a few thousand photos, oddly clean works better"
    return [note]


def at_size(data: LabelledData, size: int) -> LabelledData:
    """The same listed images, to be decoded at another size."""
    images = data.train.images
    assert isinstance(images, ImageSource) and data.test is None
    return replace(
        data,
        train=replace(data.train, images=images.resized(size)),
        image_shape=(3, size, size),
        augment=Augment(pad=size // 8, flip=True),
    )


def choose_recipe(examples: int) -> Recipe:
    """With few images, a small network and small batches, so that an epoch has enough steps."""
    model = "resnet18" if examples >= 5_000 else "resnet8"
    return Recipe(model, batch_size=max(8, min(128, examples // 20)))


def _list_files(root: str, files: FileList, options: DataOptions) -> Split:
    labels = torch.tensor(files.labels, dtype=torch.int64)
    source = ImageFiles(root, files.paths, options.image_size)
    return Split(source, labels, _unique_ids(files.paths))


def _decode_both(
    name: str, splits: tuple[Split, Split | None], options: DataOptions
) -> tuple[Split, Split | None, list[Unread]]:
    """Both splits without unreadable images, and a list of these with the reasons."""
    listed, listed_test = splits
    total = len(listed) + (len(listed_test) if listed_test else 0)
    train, bad = _decode(listed, options, 0, total, options.memory_limit)
    test = None
    if listed_test is not None:
        left = options.memory_limit - _bytes_held(train)
        test, bad_test = _decode(listed_test, options, len(listed), total, left)
        bad += bad_test
    if not len(train):
        raise none_readable(name, bad[: len(listed)], "training image")
    return train, test, bad


def _decode(
    split: Split, options: DataOptions, done: int, total: int, memory_limit: int
) -> tuple[Split, list[Unread]]:
    """One split without unreadable images, and a list of these with the reasons."""
    assert isinstance(split.images, ImageSource)
    tell = options.progress
    images, unreadable = decode_files(
        split.images,
        memory_limit,
        None if tell is None else lambda more: tell(done + more, total),
    )
    bad = [(split.ids[i], reason) for i, reason in unreadable.items()]
    return replace(without(split, unreadable), images=images), bad


def without(split: Split, places: Collection[int]) -> Split:
    """The split with labels and ids without those at `places`; the images are unchanged."""
    if not places:
        return split
    stay = [i for i in range(len(split)) if i not in places]
    return Split(split.images, split.labels[stay], [split.ids[i] for i in stay])


def _unique_ids(paths: Sequence[str]) -> list[str]:
    """Paths as ids; since ids must be unique, a path that is listed again becomes `path#2`."""
    seen: Counter[str] = Counter()
    ids = []
    for path in paths:
        seen[path] += 1
        ids.append(storable(path) if seen[path] == 1 else f"{storable(path)}#{seen[path]}")
    return ids


def _bytes_held(split: Split) -> int:
    return split.images.numel() if isinstance(split.images, Tensor) else 0


def about_unreadable(bad: Sequence[Unread], total: int, skip: bool) -> list[str]:
    """A note about unreadable files that are left out, if there are any."""
    if not bad:
        return []
    return [leave_out(tell_unreadable(bad, total), skip)]


def tell_unreadable(bad: Sequence[Unread], total: int) -> str:
    """How many images cannot be read, and the first ones as `id (reason)`."""
    return f"{len(bad):,} of {count(total, 'image')} cannot be read: {_first_reasons(bad)}"


def none_readable(name: str, bad: Sequence[Unread], what: str = "image") -> InputError:
    """The error if no image can be read."""
    why = _first_reasons(bad)
    if len({reason for _, reason in bad}) == 1:
        why = f"{bad[0][1]} ({first_few([id for id, _ in bad], NAMED)})"
    return InputError(f"{name}: none of the {count(len(bad), what)} can be read: {why}")


def _first_reasons(bad: Sequence[Unread]) -> str:
    return first_few([f"{id} ({reason})" for id, reason in bad], NAMED)


def leave_out(told: str, skip: bool) -> str:
    """A note about what is left out; raises if the user has not agreed to leave it out."""
    if not skip:
        raise InputError(f"{told}; use --skip-unreadable to leave them out")
    return f"{told}; left out"


def _about_classes(class_names: Sequence[str], train: Split) -> list[str]:
    counts = torch.bincount(train.labels, minlength=len(class_names)).tolist()
    empty = [name for name, number in zip(class_names, counts, strict=True) if not number]
    return [f"classes with no readable training image: {first_few(empty)}"] if empty else []


def measure(split: Split) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation per channel, from a few hundred images."""
    chosen = range(0, len(split), -(-len(split) // MEASURED_IMAGES))
    return channel_statistics(torch.stack([split.images[i] for i in chosen]))
