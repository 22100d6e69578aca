"""A cleaned copy of a dataset: one folder per class, decided labels, without what was removed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from oddly.copying import Copied, Progress, check_destination, copy_files, path_parts
from oddly.errors import InputError
from oddly.records import Run, read_table
from oddly.review.apply import Outcome
from oddly.review.images import find_files

SPLITS = ("train", "training", "val", "valid", "validation", "test", "testing")


def copy_cleaned(
    run: Run,
    outcome: Outcome,
    destination: Path,
    images: Path | None = None,
    progress: Progress | None = None,
) -> Copied:
    """Copy every training file of the run to `destination`/LABEL/…, but for the removed ones."""
    table = read_table(run.path / "verdicts.parquet", ["id", "given_name"])
    rows = list(zip(table["id"].to_pylist(), table["given_name"].to_pylist(), strict=True))
    source = find_files(run, images)
    if source is None:
        hint = "name their folder with --images, or use the table of labels instead"
        raise InputError(f"{run.path}: its pictures are no files, or are not there; {hint}")
    check_destination(destination, source.root)
    folders = _folder_names(sorted({*(given for _, given in rows), *outcome.labels.values()}))
    removed = set(outcome.removed)
    plan = [
        (id, f"{folders[outcome.labels.get(id, given)]}/{_below(id, given)}")
        for id, given in rows
        if id not in removed
    ]
    return copy_files(plan, source.find, destination, progress)


def _below(id: str, given: str) -> str:
    """The path below the class folder: `train/cat/2019/a.png` given as cat → `2019/a.png`."""
    if os.path.isabs(id):
        return os.path.basename(id)
    parts = path_parts(id)
    for known in (lambda part: part.lower() in SPLITS, lambda part: part == given):
        if len(parts) > 1 and known(parts[0]):
            parts = parts[1:]
    return "/".join(parts)


def _folder_names(labels: Sequence[str]) -> dict[str, str]:
    """A folder name for each label; labels may hold slashes, or be `..`."""
    names = {label: label.replace("/", "_").replace("\0", "_") for label in labels}
    names = {
        label: "_" + name if name.startswith(".") or not name else name
        for label, name in names.items()
    }
    if len(set(names.values())) < len(names):
        raise InputError("two classes would share a folder in the copy; use the table of labels")
    return names
