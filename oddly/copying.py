"""Copy image files to a new folder; originals are only read, and the copy appears at once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oddly.errors import InputError, first_few
from oddly.layout import path_parts
from oddly.pictures import Unreadable

Progress = Callable[[int, int], None]


@dataclass
class Copied:
    """How many files were copied, and which could not be."""

    files: int = 0
    missing: list[str] = field(default_factory=list)
    """`id (reason)`"""


def check_destination(destination: Path, root: Path | str) -> None:
    """Refuse a folder that is not empty, or that is inside the dataset at `root`."""
    check_empty(destination)
    real, root = Path(os.path.realpath(destination)), Path(os.path.realpath(root))
    if real == root or root in real.parents:
        raise InputError(f"{destination} is inside the dataset itself; choose another --copy-to")


def check_empty(destination: Path) -> None:
    if os.path.realpath(destination) == os.getcwd():  # it would be replaced by another folder
        raise InputError(f"{destination} is the current folder; choose another --copy-to")
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise InputError(f"{destination} is not an empty folder; choose another --copy-to")


def copy_files(
    plan: Sequence[tuple[str, str]],
    find: Callable[[str], str],
    destination: Path,
    progress: Progress | None = None,
) -> Copied:
    """Copy each `(id, target)`: the file that `find(id)` names to `destination`/`target`.

    If `find` raises `Unreadable`, the file is reported as missing.
    """
    destination = Path(os.path.abspath(destination))  # the staging name needs one, unlike `copy/..`
    staging = destination.with_name(f".{destination.name}.{os.getpid()}.oddly-tmp")
    copied, taken = Copied(), dict[str, int]()
    try:
        staging.mkdir(parents=True)
        for done, (id, target) in enumerate(plan, start=1):
            try:
                path = find(id)
            except Unreadable as reason:
                copied.missing.append(f"{id} ({reason})")
            else:
                _copy_one(path, staging / _free_name(target, taken))
                copied.files += 1
            if progress:
                progress(done, len(plan))
        if copied.missing and not copied.files:
            told = "the only file cannot be read"
            if len(plan) > 1:
                told = f"none of the {len(plan):,} files can be read"
            raise InputError(f"nothing to copy: {told}: {first_few(copied.missing, 1)}")
        if destination.exists():
            destination.rmdir()  # it is empty, as checked before
        staging.rename(destination)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return copied


def _free_name(target: str, taken: dict[str, int]) -> str:
    """A free name, with a number if needed; unique also on disks that ignore case.

    `taken` stores the last number of each name, since a table may list 100,000 times image.png.
    """
    wanted = "/".join(path_parts(target))
    stem, suffix = os.path.splitext(wanted)
    name, number = wanted, taken.get(wanted.lower(), 1)
    while name.lower() in taken:
        number += 1
        name = f"{stem}-{number}{suffix}"
    taken[name.lower()] = 1
    taken[wanted.lower()] = number
    return name


def _copy_one(path: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def about_missing(missing: Iterable[str]) -> str | None:
    """A note about files that were not copied, with the first ten names."""
    names = list(missing)
    if not names:
        return None
    named = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    many = "1 file was" if len(names) == 1 else f"{len(names):,} files were"
    return f"{many} not copied: {named}"
