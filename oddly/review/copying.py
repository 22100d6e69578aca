"""Copy a dataset cleaned: a folder per class, with the decided labels, without removed images."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from oddly.copying import Copied, Progress, check_destination, copy_files
from oddly.errors import InputError
from oddly.layout import SPLIT_NAMES, class_depth, folder_names, path_parts
from oddly.records import Run, read_table
from oddly.review.apply import Outcome, list_kept
from oddly.review.images import find_files
from oddly.review.suspects import list_classes


def copy_cleaned(
    run: Run,
    outcome: Outcome,
    destination: Path,
    images: Path | None = None,
    progress: Progress | None = None,
) -> Copied:
    """Copy every training file of the run to `destination`/LABEL/…, except the removed ones."""
    source = find_files(run, images)
    if source is None:
        hint = "give their folder with --images, or use the table of labels instead"
        raise InputError(f"{run.path}: its pictures are not files, or not found; {hint}")
    check_destination(destination, source.root)
    labels = list_kept(run, outcome)
    folders = folder_names(sorted({*labels.values()}))
    names = read_table(run.path / "verdicts.parquet", ["given_name", "suggested_name"])
    class_names = set(list_classes(names))
    plan = [(id, f"{folders[label]}/{_below(id, class_names)}") for id, label in labels.items()]
    return copy_files(plan, source.find, destination, progress)


def _below(id: str, class_names: Collection[str]) -> str:
    """The path below the class folder: `train/cat/2019/a.png` → `2019/a.png`."""
    if os.path.isabs(id):
        return os.path.basename(id)
    parts = path_parts(id)
    depth = class_depth(parts, class_names)
    if depth is None:  # no class folder: only leave out the split
        depth = 0 if len(parts) > 1 and parts[0].lower() in SPLIT_NAMES else -1
    return "/".join(parts[depth + 1 :])
