"""What cleaning leaves beside the run's own files: tables to open anywhere, a cleaned copy."""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from oddly.clean.duplicates import Duplicates
from oddly.data.base import LabelledData
from oddly.data.listing import shown
from oddly.errors import InputError
from oddly.records import Run, write_atomic

TABLES = ("verdicts.csv", "unreadable.csv", "duplicates.csv")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table that spreadsheets open, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_atomic(path, text.getvalue())


def write_unreadable(folder: Path, unreadable: Mapping[str, str]) -> None:
    """Always there, so that an empty one says: none."""
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
    verdicts = run.verdicts.sort_values(["keep", "score"], ascending=[True, False], kind="stable")
    write_atomic(run.path / "verdicts.csv", verdicts.to_csv(index=False, lineterminator="\n"))


def check_copy_to(target: Path, source: str) -> None:
    """Refuse a place where something lies already, or that is part of the source."""
    if not os.path.exists(source):
        raise InputError(f"--copy-to: the source {shown(source)} is no longer there")
    origin = os.path.realpath(source if os.path.isdir(source) else os.path.dirname(source) or ".")
    place = os.path.realpath(target)
    if os.path.isdir(source) and (place == origin or place.startswith(origin + os.sep)):
        raise InputError(f"--copy-to {target} lies inside the source; choose another place")
    if os.path.realpath(source) == place or origin.startswith(place + os.sep):
        raise InputError(f"--copy-to {target} holds the source; choose another place")
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise InputError(f"--copy-to {target} is not empty; choose another place")


def copy_cleaned(run: Run, target: Path) -> int:
    """The kept examples: files in the source's own layout, or a table that names them.

    The originals are read, never changed. Returns how many examples were written.
    """
    source = str(run.config["data"])
    kept = run.verdicts[run.verdicts.keep]
    table = target if target.suffix.lower() == ".csv" else target / "cleaned.csv"
    if not os.path.isfile(locate(data_root(run), kept.id.iloc[0])):  # rows of a dataset, not files
        _write_table(table, "id", kept.id, kept.given_name)
    elif table == target or os.path.isfile(source):
        root = data_root(run)  # absolute paths: the table may lie anywhere
        _write_table(table, "path", [locate(root, name) for name in kept.id], kept.given_name)
    else:
        _copy_files(kept.id, source, target)
    return len(kept)


def data_root(run: Run) -> str:
    """The folder that ids are relative to."""
    source = os.path.realpath(str(run.config["data"]))
    return source if os.path.isdir(source) else os.path.dirname(source)


def _write_table(table: Path, name: str, names: Iterable[str], labels: Iterable[str]) -> None:
    table.parent.mkdir(parents=True, exist_ok=True)
    write_csv(table, (name, "label"), zip(names, labels, strict=True))


def locate(root: str, name: str) -> str:
    """An example's file: ids are paths below the root; `#2` marks a row that repeats one."""
    path = os.path.join(root, name)
    if not os.path.isfile(path) and "#" in name:
        plain = os.path.join(root, name.rpartition("#")[0])
        return plain if os.path.isfile(plain) else path
    return path


def _copy_files(ids: Iterable[str], source: str, target: Path) -> None:
    for name in ids:
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.join(source, name), copy)
