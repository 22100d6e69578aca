"""Load a CSV or Parquet table of image paths and labels."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from oddly.data.base import DataOptions, LabelledData
from oddly.data.files import FileList, leave_out, load_files
from oddly.data.image_folder import NO_VAL
from oddly.data.listing import natural, storable
from oddly.errors import InputError, count, first_few, shown
from oddly.layout import SPLIT_NAMES
from oddly.text_table import (
    LABEL_COLUMNS,
    PATH_COLUMNS,
    about_choice,
    read_text_columns,
    refuse_empty,
)


def load_table(file: Path, options: DataOptions) -> LabelledData:
    """The files in a table, relative to the table's folder, with their labels."""
    wanted = {"path": PATH_COLUMNS, "label": LABEL_COLUMNS, "split": ("split",)}
    columns = read_text_columns(file, wanted, optional=["split"])
    columns = {name: [value.strip() for value in values] for name, values in columns.items()}
    paths, labels = columns["path"], columns["label"]
    for name, values in (("path", paths), ("label", labels)):
        refuse_empty(file, name, values)
    root = os.path.realpath(file.parent)
    paths, missing = _locate(root, paths)
    notes = about_choice(file, wanted)
    notes += _about_missing(file, [paths[i] for i in missing], len(paths), options)
    if not options.decode:
        missing = []  # they will be reported with the unreadable images when these are read
    splits = None if options.pool_splits else columns.get("split")
    parts = _split_rows(file, splits, sorted(set(range(len(paths))) - set(missing)))
    test_rows = parts.get("test", parts.get("val"))
    notes += [NO_VAL] * ("test" in parts and "val" in parts)
    class_names = _class_names(file, [labels[i] for i in parts["train"]])
    lists = (
        _label(file, paths, labels, parts["train"], class_names),
        None if test_rows is None else _label(file, paths, labels, test_rows, class_names),
    )
    notes += _about_repeats(paths, labels)
    data = load_files(storable(file.stem), root, class_names, lists, options, notes)
    return replace(data, unread=[*data.unread, *(storable(paths[i]) for i in missing)])


def _locate(root: str, paths: Sequence[str]) -> tuple[list[str], list[int]]:
    """Paths relative to root if they are below it; and the places of files that do not exist."""
    located, missing = [], []
    for i, path in enumerate(paths):
        if "\\" in path and not os.path.isfile(os.path.join(root, path)):
            path = path.replace("\\", "/")  # a table written on Windows
        if not os.path.isfile(os.path.join(root, path)):
            missing.append(i)
        elif os.path.isabs(path) and path.startswith(root + "/"):
            path = path[len(root) + 1 :]
        located.append(path.removeprefix("./"))
    return located, missing


def _about_missing(
    file: Path, missing: Sequence[str], total: int, options: DataOptions
) -> list[str]:
    """A note about missing files that are left out, if there are any."""
    if not missing:
        return []
    if len(missing) == total > 1:
        raise InputError(
            f"none of the {count(total, 'file')} named in {shown(str(file))} exists:"
            f" {first_few(missing, 3)}; a path in a table is relative to the table's own folder,"
            f" here {shown(os.path.realpath(file.parent))}"
        )
    do = "does" if len(missing) == 1 else "do"
    told = (
        f"{len(missing):,} of {count(total, 'file')} named in {shown(str(file))} {do} not exist:"
        f" {first_few(missing)}"
    )
    return [leave_out(told, options.skip_unreadable)]


def _split_rows(
    file: Path, splits: Sequence[str] | None, rows: Sequence[int]
) -> dict[str, list[int]]:
    """Row numbers by split; without a split column, all rows are for training."""
    if splits is None:
        parts = {"train": list(rows)}
    else:
        parts = {}
        for i in rows:
            kind = SPLIT_NAMES.get(splits[i].lower())
            if kind is None:
                raise InputError(
                    f"{shown(str(file))}: unknown split '{shown(splits[i])}' in row {i + 1}; use"
                    " train, val or test"
                )
            parts.setdefault(kind, []).append(i)
    if not parts.get("train"):
        raise InputError(f"{shown(str(file))} has no rows to train on")
    return parts


def _class_names(file: Path, labels: Sequence[str]) -> list[str]:
    names = sorted(set(labels), key=natural)
    if len(names) < 2:
        raise InputError(
            f"{shown(str(file))} has only one class ({shown(names[0])}); two are needed"
        )
    return names


def _label(
    file: Path,
    paths: Sequence[str],
    labels: Sequence[str],
    rows: Sequence[int],
    class_names: Sequence[str],
) -> FileList:
    """The paths of the rows, with their labels as indices into `class_names`."""
    index = {name: k for k, name in enumerate(class_names)}
    unknown = sorted({labels[i] for i in rows} - set(index), key=natural)
    if unknown:
        raise InputError(
            f"{shown(str(file))}: test rows have classes that no training row has:"
            f" {first_few(unknown)}"
        )
    return FileList([paths[i] for i in rows], [index[labels[i]] for i in rows])


def _about_repeats(paths: Sequence[str], labels: Sequence[str]) -> list[str]:
    repeats = len(paths) - len(set(paths))
    if not repeats:
        return []
    many = count(repeats, "row")
    note = f"{many} repeat{'s' * (repeats == 1)} a file; repeated ids end in #2, #3, …"
    pairs = Counter(path for path, _ in set(zip(paths, labels, strict=True)))
    if torn := [path for path in pairs if pairs[path] > 1]:
        note += (
            f"; {count(len(torn), 'file')} with different labels, at most one of them right:"
            f" {first_few(torn, 3)}"
        )
    return [note]
