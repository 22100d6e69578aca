"""Load a folder with a sub-folder per class, with or without a train/ val/ test/ level above."""

from __future__ import annotations

import errno
import os
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from oddly.data.base import DataOptions, LabelledData
from oddly.data.files import FileList, leave_out, load_files
from oddly.data.images import SUFFIXES
from oddly.data.listing import natural, storable
from oddly.errors import InputError, count, first_few, shown
from oddly.layout import SPLIT_NAMES

NO_VAL = "val is not used because there is a test split; oddly train --pool-splits uses all"


def load_image_folder(root: Path, options: DataOptions) -> LabelledData:
    """Every image below a class folder, in natural order; the folder's name is the given label."""
    tree = _scan(os.path.realpath(root))
    closed = _about_closed(tree, options.skip_unreadable)
    if not tree.images:
        raise InputError(f"{shown(str(root))} contains no images{_hint(tree)}")
    notes = [*closed, *_about_scan(tree)]
    parts = _find_splits(str(root), tree, notes)
    if parts is None:
        train, test, depth = tree.images, None, 0
        notes += _about_level(str(root), tree.images)
    elif options.pool_splits:
        train, test, depth = [path for part in parts.values() for path in part], None, 1
        folders = dict.fromkeys(path.split("/")[0] + "/" for path in train)  # their own names
        notes.append(f"judged together: {first_few(list(folders))}")
    else:
        train, test, depth = parts["train"], _choose_test(parts, notes), 1
    class_names = _class_names(str(root), train, depth)
    notes += _about_left_out(tree, train, class_names, depth)
    lists = (
        _label(str(root), train, class_names, depth),
        _label(str(root), test, class_names, depth) if test else None,
    )
    name = os.path.basename(os.path.realpath(root)) or str(root)
    data = load_files(storable(name), os.path.realpath(root), class_names, lists, options, notes)
    return replace(data, closed={storable(path): why for path, why in tree.closed.items()})


@dataclass
class _Tree:
    """What a scan found; paths are relative to the root, with slashes."""

    images: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    """Suffixes of the files that are not images."""
    links: list[str] = field(default_factory=list)
    """Links that lead outside the root or in a circle; they are not followed."""
    closed: dict[str, str] = field(default_factory=dict)
    """Folders that cannot be read → the reason."""


def _scan(root: str) -> _Tree:
    """Find all image files below root, in natural order; hidden files and folders are ignored."""
    tree = _Tree()
    # (relative path, real path, real paths of the folders above and itself)
    stack: list[tuple[str, frozenset[str], str]] = [("", frozenset({root}), root)]
    while stack:
        prefix, above, real = stack.pop()
        for entry in _list(root, prefix, tree):
            if entry.name.startswith(".") or entry.name == "__MACOSX":
                continue
            path = prefix + entry.name
            target = os.path.join(real, entry.name)
            if entry.is_symlink():
                target = os.path.realpath(target)
                if target in above or not _is_inside(target, root) or _is_circle(entry):
                    tree.links.append(path)
                    continue
            # For links, os.path.isdir, since entry.is_dir raises if the target cannot be read.
            if os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir():
                tree.folders.append(path)
                stack.append((path + "/", above | {target}, target))
            elif os.path.splitext(entry.name)[1].lower() in SUFFIXES:
                tree.images.append(path)
            else:
                tree.others[os.path.splitext(entry.name)[1].lower() or "no suffix"] += 1
    tree.images.sort(key=natural)
    return tree


def _list(root: str, prefix: str, tree: _Tree) -> list[os.DirEntry[str]]:
    """The entries of a folder; an unreadable folder below the root is noted in the tree."""
    try:
        return list(os.scandir(os.path.join(root, prefix)))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if not prefix:
            raise InputError(f"{shown(root)} cannot be read: {reason}") from None
        tree.closed[prefix] = reason
        return []


def _is_circle(link: os.DirEntry[str]) -> bool:
    """Whether a link leads to itself in the end."""
    try:
        link.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _find_splits(root: str, tree: _Tree, notes: list[str]) -> dict[str, list[str]] | None:
    """The images by split if the first level is train/ val/ test/; None if it is classes."""
    by_folder: dict[str, list[str]] = {}
    for path in tree.images:
        if "/" in path:
            by_folder.setdefault(path.split("/")[0], []).append(path)
    splits = {name: SPLIT_NAMES[name.lower()] for name in by_folder if name.lower() in SPLIT_NAMES}
    if not splits:
        return None
    kinds = set(splits.values())
    others = sorted(set(by_folder) - set(splits))
    # A class may be called "train" (the vehicle); splits contain class folders, classes do not.
    sure = len(kinds) > 1 and "train" in kinds and all(_has_classes(by_folder[s]) for s in splits)
    if others and not sure:
        return None
    if "train" not in kinds:
        raise InputError(
            f"{shown(root)} has {first_few(sorted(splits))} but no images in train/; add train/, or"
            " give a folder whose sub-folders are the classes"
        )
    if others:
        notes.append(f"left out folders next to train/: {first_few(others)}")
    parts: dict[str, list[str]] = {}
    for name, kind in splits.items():
        parts.setdefault(kind, []).extend(by_folder[name])
    return parts


def _has_classes(paths: Sequence[str]) -> bool:
    """Whether images lie in folders below the split, not in the split itself."""
    return all(path.count("/") >= 2 for path in paths)


def _about_level(root: str, images: Sequence[str]) -> list[str]:
    """A note if all classes contain the same sub-folders, which are then probably the classes.

    Raises if one of them has the name of a split.
    """
    inside: dict[str, set[str]] = {}
    for path in images:
        first, *rest = path.split("/")
        if rest:  # "" if an image is directly in the folder, as in a class folder
            inside.setdefault(first, set()).add(rest[0] if len(rest) > 1 else "")
    shared = sorted(set.intersection(*inside.values()), key=natural) if len(inside) > 1 else []
    if len(shared) < 2 or any("" in each for each in inside.values()):
        return []
    folders = sorted(inside, key=natural)
    all_hold = f"all contain {first_few(shared, 3)}"
    if any(name.lower() in SPLIT_NAMES for name in folders):
        raise InputError(
            f"{shown(root)}: {first_few(folders, 3)} {all_hold}; rename the one to train on to"
            " train/ and others to val/ or test/, or give one of them"
        )
    return [
        f"using {first_few(folders, 3)} as classes, but they {all_hold}; if those are the"
        " classes, give one of their parent folders, or a table of path and label"
    ]


def _choose_test(parts: dict[str, list[str]], notes: list[str]) -> list[str] | None:
    """test/, else val/; a split without class folders has no labels and is not used."""
    for kind in ("test", "val"):
        if kind in parts:
            if any(path.count("/") >= 2 for path in parts[kind]):
                if kind == "test" and "val" in parts:
                    notes.append(NO_VAL)
                return parts[kind]
            notes.append(f"{kind}/ has no class folders, so it is not used")
    return None


def _class_of(path: str, depth: int) -> str | None:
    """The name of the class folder in NFC (macOS archives use NFD); None if there is none."""
    parts = path.split("/")
    return storable(unicodedata.normalize("NFC", parts[depth])) if len(parts) > depth + 1 else None


def _class_names(root: str, train: Sequence[str], depth: int) -> list[str]:
    """The classes of the training images in natural order, at least two."""
    where = shown(root) + "/train" * depth
    found = {_class_of(path, depth) for path in train} - {None}
    names = sorted((name for name in found if name is not None), key=natural)
    if not names:
        raise InputError(f"{where} has images but no class folders; put each class in its own")
    if len(names) == 1:
        below = {path.split("/")[depth + 1] for path in train if path.count("/") > depth + 1}
        hint = f"; did you mean {where}/{shown(names[0])}?" if len(below) > 1 else ""
        raise InputError(f"{where} has only one class ({shown(names[0])}); two are needed{hint}")
    return names


def _label(root: str, paths: Sequence[str], class_names: Sequence[str], depth: int) -> FileList:
    """Paths with the index of their class; images outside class folders are dropped."""
    index = {name: k for k, name in enumerate(class_names)}
    named = [(path, name) for path in paths if (name := _class_of(path, depth)) is not None]
    unknown = sorted({name for _, name in named} - set(index), key=natural)
    if unknown:
        raise InputError(
            f"{shown(root)}: {named[0][0].split('/')[0]}/ has classes without images in train/:"
            f" {first_few(unknown)}"
        )
    return FileList([path for path, _ in named], [index[name] for _, name in named])


def _about_closed(tree: _Tree, skip: bool) -> list[str]:
    """A note about unreadable folders; raises if the user has not agreed to leave them out."""
    if not tree.closed:
        return []
    closed = [f"{path} ({reason})" for path, reason in sorted(tree.closed.items())]
    told = f"{count(len(closed), 'folder')} cannot be read: {first_few(closed)}"
    return [leave_out(told, skip)]


def _about_scan(tree: _Tree) -> list[str]:
    """Notes about links and files that are ignored."""
    notes = []
    if tree.links:
        notes.append(
            f"ignored {count(len(tree.links), 'link')} pointing outside the folder or in a circle:"
            f" {first_few(sorted(tree.links))}"
        )
    if tree.others:
        notes.append(_about_others(tree.others))
    return notes


def _about_others(others: Counter[str]) -> str:
    by_number = sorted(others.items(), key=lambda item: (-item[1], item[0]))
    kinds = [f"{suffix} {number:,}" for suffix, number in by_number]
    if len(by_number) == 1:
        kinds = [by_number[0][0]]
    what = "that is not an image" if others.total() == 1 else "that are not images"
    return f"skipped {count(others.total(), 'file')} {what} ({first_few(kinds)})"


def _about_left_out(
    tree: _Tree, train: Sequence[str], class_names: Sequence[str], depth: int
) -> list[str]:
    """Notes about images outside class folders, and about folders without images."""
    notes = []
    loose = [path for path in tree.images if _class_of(path, depth) is None]
    if loose:
        notes.append(
            f"left out {count(len(loose), 'image')} outside class folders: {first_few(loose)}"
        )
    parents = {path.split("/")[0] for path in train} if depth else {""}
    empty = [
        folder
        for folder in sorted(tree.folders, key=natural)
        if folder.count("/") == depth
        and (not depth or folder.split("/")[0] in parents)
        and _class_of(folder + "/", depth) not in class_names
    ]
    if empty:
        notes.append(f"left out folders without images: {first_few(empty)}")
    return notes


def _hint(tree: _Tree) -> str:
    notes = _about_scan(tree)
    return f" ({'; '.join(notes)})" if notes else ""
