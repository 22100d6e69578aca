"""Image files copied into a new folder: the originals are only read, the copy appears whole."""

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
    """What a copy holds, and what it could not hold."""

    files: int = 0
    missing: list[str] = field(default_factory=list)
    """`id (reason)`"""


def check_destination(destination: Path, root: Path | str) -> None:
    """Refuse a place where something lies already, or that is part of the dataset below `root`."""
    check_empty(destination)
    real, root = Path(os.path.realpath(destination)), Path(os.path.realpath(root))
    if real == root or root in real.parents:
        raise InputError(f"{destination} is inside the dataset itself; choose another --copy-to")


def check_empty(destination: Path) -> None:
    if os.path.realpath(destination) == os.getcwd():  # it is replaced as a whole
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

    `find` raises `Unreadable` where there is none: it is told, not refused.
    """
    destination = Path(os.path.abspath(destination))  # `copy/..` has no name for staging to take
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
            destination.rmdir()  # empty: checked before
        staging.rename(destination)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return copied


def _free_name(target: str, taken: dict[str, int]) -> str:
    """The name, or one with a number; apart also on disks that do not tell A from a.

    `taken` remembers the last number of each name: a table may list 100,000 image.png.
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
    """One line about what a copy lacks, the first ten by name."""
    names = list(missing)
    if not names:
        return None
    named = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    many = "1 file was" if len(names) == 1 else f"{len(names):,} files were"
    return f"{many} not copied: {named}"
