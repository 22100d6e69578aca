"""Shared by the three large datasets: files are decoded when needed, never all at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from oddly.data.base import Augment, DataOptions, LabelledData, Recipe, Split
from oddly.data.files import FileList, leave_out
from oddly.data.source import ImageFiles
from oddly.errors import InputError, count, first_few, shown

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MARGIN = 8 / 7
"""Images are decoded this much larger than the crop: 256 for 224."""
RANDOM_AREA = (0.08, 1.0)


def load_large(
    name: str,
    root: Path,
    class_names: Sequence[str],
    lists: tuple[FileList, FileList],
    options: DataOptions,
    recipe: Recipe,
    area: tuple[float, float] | None = RANDOM_AREA,
) -> LabelledData:
    """Training and test files with their labels; crops of `options.image_size`.

    A file is decoded to its centred square first, so random crops are within that. Missing files
    are reported, and left out on request. A file that cannot be decoded stops the run when it is
    read, since decoding a million files beforehand would take hours.
    """
    crop = options.image_size
    side = round(MARGIN * crop)
    notes: list[str] = []
    train, test = (_make_split(name, root, files, side, options, notes) for files in lists)
    return LabelledData(
        name=name,
        class_names=class_names,
        train=train,
        test=test,
        true_labels=None,
        image_shape=(3, crop, crop),
        mean=MEAN,
        std=STD,
        augment=Augment(flip=True, crop=crop, area=area),
        recipe=recipe,
        notes=tuple(notes),
    )


def _make_split(
    name: str, root: Path, files: FileList, side: int, options: DataOptions, notes: list[str]
) -> Split:
    absent = {i for i, path in enumerate(files.paths) if not os.path.isfile(root / path)}
    if absent:
        told = (
            f"{name}: {len(absent):,} of {count(len(files.paths), 'image')} missing:"
            f" {first_few([files.paths[i] for i in sorted(absent)], 3)}"
        )
        notes.append(leave_out(told, options.skip_unreadable))
    there = [i for i in range(len(files.paths)) if i not in absent]
    if not there:
        raise InputError(f"{name}: none of its images found in {shown(str(root))}")
    paths = [files.paths[i] for i in there]
    labels = torch.tensor([files.labels[i] for i in there], dtype=torch.int64)
    return Split(ImageFiles(str(root), paths, side), labels, paths)


def read_lines(path: Path, what: str) -> list[str]:
    """The lines of a text file, with or without a byte order mark and a final newline."""
    try:
        # Not splitlines(): it would also split names at other characters, such as \x0c.
        return path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text") from None
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        if isinstance(error, FileNotFoundError):
            reason = "is missing"
        hint = f"set --data-dir to the folder that contains {what}"
        raise InputError(f"{path} {reason}; {hint}") from None


def read_labels(path: Path, what: str, num_classes: int) -> dict[str, int]:
    """`PATH LABEL` per line, split at the last space: paths may hold spaces and commas."""
    labels = {}
    for number, line in enumerate(read_lines(path, what), start=1):
        if not line.strip():
            continue
        key, _, text = line.strip().rpartition(" ")
        label = int(text) if text.isdecimal() and len(text) < 10 else num_classes
        if not key or label >= num_classes:
            raise InputError(
                f"{path}, line {number}: expected PATH LABEL, got '{shown(line[:80])}'; labels are"
                f" 0..{num_classes - 1}"
            )
        labels[key] = label
    if not labels:
        raise InputError(f"{path} is empty")
    return labels


def listed(labels: Mapping[str, int], prefix: str = "") -> FileList:
    return FileList([prefix + path for path in labels], list(labels.values()))
