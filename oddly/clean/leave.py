"""Write what cleaning adds to the run's own files: tables to open anywhere, a cleaned copy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import pandas as pd

from oddly.clean.duplicates import Duplicates
from oddly.clean.findings import rank
from oddly.copying import Copied, Progress, check_destination, check_empty, copy_files
from oddly.data.base import LabelledData
from oddly.data.huggingface import is_huggingface
from oddly.data.source import ImageSource
from oddly.errors import InputError, count, shown
from oddly.layout import class_depth, folder_names
from oddly.pictures import SIDE, Unreadable, file_names, read_picture, shrink
from oddly.records import Run, RunWriter, choose_stored, group_twins, write_atomic, write_csv


def write_unreadable(folder: Path, unreadable: Mapping[str, str]) -> None:
    """Write the list even if it is empty, which then says that there are none."""
    write_csv(folder / "unreadable.csv", ("id", "reason"), sorted(unreadable.items()))


def write_duplicates(folder: Path, groups: Sequence[Duplicates], data: LabelledData) -> None:
    """One row per image; a group shares its number."""
    rows = [
        (
            number,
            data.train.ids[i],
            data.class_names[label],
            str(group.conflicting).lower(),
            group.same,
        )
        for number, group in enumerate(groups, start=1)
        for i, label in zip(group.places, group.labels, strict=True)
    ]
    header = ("group", "id", "given_name", "conflicting", "same")
    write_csv(folder / "duplicates.csv", header, rows)


def write_verdicts_csv(run: Run) -> None:
    """verdicts.parquet as a CSV, most suspicious first."""
    ranked = rank(run.verdicts, run)
    # csv does not quote \r, which readers treat as the end of a line
    returns = ranked.id.str.contains("\r").any() or any(
        "\r" in name for name in ranked.given_name.cat.categories
    )
    quoting: Literal[0, 2] = 2 if returns else 0  # QUOTE_NONNUMERIC or QUOTE_MINIMAL
    table = ranked.to_csv(index=False, lineterminator="\n", quoting=quoting)
    write_atomic(run.path / "verdicts.csv", table)


def store_pictures(run: Run, source: ImageSource) -> None:
    """Store small pictures of images that are rows of a dataset; pages can only open files."""
    keep, scores = run.verdicts["keep"].to_numpy(), run.verdicts["score"].to_numpy()
    pictures = group_twins(run.path, run.verdicts["id"].tolist())
    small: dict[int, bytes] = {}
    for place in choose_stored(keep, scores, pictures).tolist():
        try:
            if isinstance(content := source.source(place), bytes):
                small[place] = shrink(read_picture(content, SIDE))
        except Unreadable:  # deleted meanwhile
            continue
    if small:
        RunWriter(run.path).write_thumbnails(small)


def check_copy_to(target: Path, source: str) -> None:
    """Refuse a target that exists already or is part of the source."""
    if not os.path.exists(source):
        raise InputError(f"--copy-to: the source {shown(source)} no longer exists")
    if is_table(target) and target.exists():
        raise InputError(f"{target} already exists; choose another --copy-to")
    if os.path.isdir(source):
        check_destination(target, source)
    else:
        check_empty(target)


def copy_cleaned(run: Run, target: Path, progress: Progress | None = None) -> Copied:
    """Copy the kept examples: files in the layout of the source, or a table that lists them.

    If a table replaced labels, the new label is the class folder in the copy. The originals are
    only read.
    """
    kept = run.verdicts[run.verdicts.keep]
    if not len(kept):
        raise InputError(f"{run.path}: every example is a suspect, so there is nothing to copy")
    root = data_root(run)
    table = _table_of(target)
    if holds_rows(run):
        return copy_rows(target, dict(zip(kept.id, kept.given_name, strict=True)))
    if table == target or os.path.isfile(str(run.config["data"])):
        # absolute paths: the table may lie anywhere
        _write_table(table, "path", [locate(root, name) for name in kept.id], kept.given_name)
    else:
        plan = list(zip(kept.id, _plan_layout(root, kept), strict=True))
        return copy_files(plan, lambda name: _find(root, name), target, progress)
    return Copied(len(kept))


def copy_rows(target: Path, labels: Mapping[str, str]) -> Copied:
    """Write a table of ids and labels, if there are no files to copy."""
    _write_table(_table_of(target), "id", labels.keys(), labels.values())
    return Copied(len(labels))


def describe_copy(run: Run, target: Path, copied: Copied) -> str:
    """What `copy_cleaned` or `copy_rows` wrote."""
    if not holds_rows(run):
        return f"{target}, {count(copied.files, 'example')}"
    return (
        f"{_table_of(target)}, a table of {count(copied.files, 'id')} and labels: a Hugging Face"
        " dataset has rows, not files to copy"
    )


def holds_rows(run: Run) -> bool:
    """Whether the source is a Hugging Face dataset, whose images are rows and not files."""
    return bool(run.config.get("data")) and is_huggingface(run.find_path(str(run.config["data"])))


def _table_of(target: Path) -> Path:
    return target if is_table(target) else target / "cleaned.csv"


def _plan_layout(root: str, kept: pd.DataFrame) -> Iterator[str]:
    """Each example's path in the copy: its own, with the folder of its current label."""
    class_names = set(kept.given_name.cat.categories)
    folders = folder_names(kept.given_name.unique())
    for name, label in zip(kept.id, kept.given_name, strict=True):
        parts = os.path.relpath(locate(root, name), root).split("/")
        depth = class_depth(name.split("/"), class_names)
        if depth is not None and normalize("NFC", name.split("/")[depth]) != label:
            parts[depth] = folders[label]
        yield "/".join(parts)


def is_table(target: Path) -> bool:
    return target.suffix.lower() == ".csv"


def data_root(run: Run) -> str:
    """The folder that ids are relative to, without links."""
    if (root := run.data_root) is None:
        raise InputError(f"{shown(str(run.config['data']))} and its images no longer exist")
    return os.path.realpath(root)


def _write_table(table: Path, name: str, names: Iterable[str], labels: Iterable[str]) -> None:
    table.parent.mkdir(parents=True, exist_ok=True)
    write_csv(table, (name, "label"), zip(names, labels, strict=True))


def locate(root: str, name: str) -> str:
    """An example's file: ids are paths below the root."""
    paths = [os.path.join(root, spelling) for spelling in file_names(name)]
    return next((path for path in paths if os.path.isfile(path)), paths[0])


def _find(root: str, name: str) -> str:
    path = locate(root, name)
    if not os.path.isfile(path):
        raise Unreadable("file not found")
    return path
