"""The layout of image folders: perhaps train/ and test/, then classes, then anything below."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence

from oddly.errors import InputError

SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "eval": "val",
    "test": "test",
    "testing": "test",
}
"""Names of folders above the classes, in lower case → the split that they are."""


def path_parts(name: str) -> list[str]:
    """The parts of a path without those that lead elsewhere: `/a/../b//c` → a, b, c."""
    return [part for part in name.split("/") if part not in ("", ".", "..")]


def class_depth(parts: Sequence[str], class_names: Collection[str]) -> int | None:
    """Which part of a path is its class folder: 1 in train/cat/a.png, 0 in cat/2019/a.png."""
    # class names are in NFC, but folders from a macOS archive are not
    named = [unicodedata.normalize("NFC", part) in class_names for part in parts[:-1]]
    if len(named) > 1 and named[1] and parts[0].lower() in SPLIT_NAMES:
        return 1
    return 0 if named and named[0] else None


def folder_names(labels: Iterable[str]) -> dict[str, str]:
    """A folder name for each label; labels may hold slashes, or be `..`."""
    names = {label: label.replace("/", "_").replace("\0", "_") for label in labels}
    names = {
        label: "_" + name if name.startswith(".") or not name else name
        for label, name in names.items()
    }
    if len(set(names.values())) < len(names):
        raise InputError(
            "two classes would share a folder in the copy; use the table of labels instead"
        )
    return names
