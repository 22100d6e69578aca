"""A cleaned copy of a dataset: one folder per class, decided labels, without what was removed.

The originals are only read. The copy appears under its name when it is whole.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oddly.errors import InputError
from oddly.records import Run, read_table
from oddly.review.apply import Outcome
from oddly.review.images import ImageFiles, NoPicture, find_images

SPLITS = ("train", "training")


@dataclass
class Copied:
    """What a copy holds, and what it could not hold."""

    files: int = 0
    missing: list[str] = field(default_factory=list)
    """`id (reason)`"""


def copy_cleaned(
    run: Run,
    outcome: Outcome,
    destination: Path,
    images: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Copied:
    """Copy every training file of the run to `destination`/LABEL/…, but for the removed ones."""
    table = read_table(run.path / "verdicts.parquet", ["id", "given_name"])
    ids, given = table["id"].to_pylist(), table["given_name"].to_pylist()
    source = find_images(run, ids[0], images)
    if not isinstance(source, ImageFiles):
        hint = "use the table of labels instead"
        raise InputError(f"{run.path}: its pictures are no files, so nothing is copied; {hint}")
    _check_destination(destination, Path(source.root))
    folders = _folder_names(sorted({*given, *outcome.labels.values()}))
    staging = destination.with_name(f".{destination.name}.{os.getpid()}.oddly-tmp")
    copied, removed, taken = Copied(), set(outcome.removed), set[str]()
    try:
        staging.mkdir(parents=True)
        for done, (id, name) in enumerate(zip(ids, given, strict=True), start=1):
            if id not in removed:
                label = outcome.labels.get(id, name)
                _copy_one(source, id, staging, (folders[label], _below(id, name)), taken, copied)
            progress(done, len(ids))
        if destination.exists():
            destination.rmdir()  # empty: checked above
        staging.rename(destination)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return copied


def _copy_one(
    source: ImageFiles,
    id: str,
    staging: Path,
    place: tuple[str, str],
    taken: set[str],
    copied: Copied,
) -> None:
    try:
        path = source.find(id)
    except NoPicture as reason:
        copied.missing.append(f"{id} ({reason})")
        return
    stem, suffix = os.path.splitext("/".join(place))
    target, number = stem + suffix, 1
    while target.lower() in taken:  # also apart on disks that do not tell A from a
        number += 1
        target = f"{stem}-{number}{suffix}"
    taken.add(target.lower())
    (staging / target).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, staging / target)
    copied.files += 1


def _below(id: str, given: str) -> str:
    """The path below the class folder: `train/cat/2019/a.png` given as cat → `2019/a.png`."""
    if os.path.isabs(id):
        return os.path.basename(id)
    parts = [part for part in id.split("/") if part not in ("", ".", "..")]
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


def _check_destination(destination: Path, root: Path) -> None:
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise InputError(f"{destination} is not an empty folder; choose another --copy-to")
    real = Path(os.path.realpath(destination))
    if real == root or root in real.parents:
        raise InputError(f"{destination} lies inside the dataset itself; choose another --copy-to")
