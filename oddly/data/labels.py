"""A table of id and label that replaces the given labels (`--labels`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path

import torch
from torch import Tensor

from oddly.data.base import LabelledData
from oddly.errors import InputError, count, first_few, shown
from oddly.text_table import (
    ID_COLUMNS,
    LABEL_COLUMNS,
    PERSON,
    SUFFIXES,
    about_choice,
    read_text_columns,
    refuse_empty,
    spell,
)

YES, NO = ("yes", "true", "1"), ("no", "false", "0", "")
REMOVED = -1  # in place of a class


def replace_labels(data: LabelledData, file: Path) -> LabelledData:
    """The data with the labels of a table; other ids keep their labels, true labels are unchanged.

    Examples with yes in a column `remove` are left out, and need no label. Labels with person in a
    column `decided_by` (as written by `oddly apply`) are confirmed. With that column, up to half
    of the ids may be missing from the data.
    """
    check_table("labels", file)
    wanted = {"id": ID_COLUMNS, "label": LABEL_COLUMNS}
    wanted |= {name: (name,) for name in ("remove", "decided_by")}
    columns = read_text_columns(file, wanted, optional=["remove", "decided_by"])
    choice = about_choice(file, wanted)
    refuse_empty(file, "id", columns["id"])
    columns = _pass_over_unread(columns, data)
    columns, notes = _pass_over_gone(file, columns, data.train.ids)
    removed = _find_removed(file, columns)
    pairs = zip(columns["label"], removed, strict=True)
    refuse_empty(file, "label", ["removed" if gone else label for label, gone in pairs])
    places = _find_places(file, columns["id"], data.train.ids)
    classes = _find_classes(file, columns, removed, data.class_names)
    _refuse_contradictions(file, columns["id"], places, classes)
    labels = data.train.labels.clone()
    labels[torch.tensor(places, dtype=torch.int64)] = torch.tensor(classes, dtype=torch.int64)
    data = replace(data, decided=_find_decided(columns, places, len(labels)))
    kept = torch.nonzero(labels != REMOVED).flatten()
    if not len(kept):
        raise InputError(f"{shown(str(file))} removes every training example")
    if len(left := labels[kept].unique()) < 2:
        only = shown(data.class_names[int(left)])
        raise InputError(f"{shown(str(file))} leaves one class only ({only}), two are needed")
    given = len({place for place, k in zip(places, classes, strict=True) if k != REMOVED})
    changed = int((labels != data.train.labels)[kept].sum())
    note = f"{shown(file.name)}: {count(given, 'label')} read, {changed:,} of them different"
    if len(kept) < len(labels):
        note += f"; {count(len(labels) - len(kept), 'example')} removed"
        data, labels = data.take(kept), labels[kept]
    if data.decided is not None and data.decided.any():
        note += f"; {count(int(data.decided.sum()), 'label')} set by a person, left unchanged"
    return replace(data.with_given_labels(labels), notes=(*data.notes, *choice, *notes, note))


def check_table(option: str, file: Path) -> None:
    """Refuse a file that does not exist or is not a table."""
    if not file.is_file() or file.suffix.lower() not in SUFFIXES:
        reason = f"is not a {' or '.join(SUFFIXES)} file" if file.exists() else "does not exist"
        raise InputError(f"{option}: {shown(str(file))} {reason}")


def _find_removed(file: Path, columns: Mapping[str, Sequence[str]]) -> list[bool]:
    """Which rows remove their example."""
    said = [value.strip().lower() for value in columns.get("remove", [""] * len(columns["id"]))]
    unknown = [value for value in said if value not in (*YES, *NO)]
    if unknown:
        raise InputError(
            f"{shown(str(file))}: column remove must be yes or no, got '{shown(unknown[0])}'"
        )
    return [value in YES for value in said]


def _find_decided(
    columns: Mapping[str, Sequence[str]], places: Sequence[int], examples: int
) -> Tensor | None:
    """Which examples a person has decided on; None if the table does not say."""
    said = columns.get("decided_by", [])
    vouched = [
        place for place, who in zip(places, said, strict=False) if who.strip().lower() == PERSON
    ]
    if not vouched:
        return None
    decided = torch.zeros(examples, dtype=torch.bool)
    decided[vouched] = True
    return decided


def _pass_over_unread(columns: dict[str, list[str]], data: LabelledData) -> dict[str, list[str]]:
    """Drop rows about images that cannot be read, which have been reported already."""
    unread, closed = set(data.unread), tuple(data.closed)
    names = spell(columns["id"], unread)
    stay = [name not in unread and not name.startswith(closed) for name in names]
    return {name: list(compress(values, stay)) for name, values in columns.items()}


def _pass_over_gone(
    file: Path, columns: dict[str, list[str]], known: Sequence[str]
) -> tuple[dict[str, list[str]], list[str]]:
    """Drop decisions about files that have been deleted since, with a note."""
    there = set(known)
    stay = [name in there for name in spell(columns["id"], there)]
    if "decided_by" not in columns or all(stay) or 2 * sum(stay) < len(stay):
        return columns, []
    gone = [name for name, found in zip(columns["id"], stay, strict=True) if not found]
    columns = {name: list(compress(values, stay)) for name, values in columns.items()}
    return columns, [f"{shown(file.name)}: {_not_there(gone, len(stay))}; ignored"]


def _not_there(unknown: Sequence[str], total: int) -> str:
    verb = "is" if len(unknown) == 1 else "are"
    return (
        f"{len(unknown):,} of {count(total, 'id')} {verb} not in the training data:"
        f" {first_few(unknown, 3)}"
    )


def _find_places(file: Path, ids: Sequence[str], known: Sequence[str]) -> list[int]:
    """The index of each id in the training split."""
    index = {name: i for i, name in enumerate(known)}
    ids = spell(ids, index)
    unknown = [name for name in ids if name not in index]
    if unknown:
        raise InputError(
            f"{shown(str(file))}: {_not_there(unknown, len(ids))} (its ids look like"
            f" {shown(known[0])}); remove those rows, or use the table made for this data"
        )
    return [index[name] for name in ids]


def _find_classes(
    file: Path,
    columns: Mapping[str, Sequence[str]],
    removed: Sequence[bool],
    class_names: Sequence[str],
) -> list[int]:
    """Each label as a class index (by name, else by number), or `REMOVED`.

    If all class names are numbers, such as 1 to 10, only names count; a 0 would otherwise silently
    be class 1.
    """
    by_number = not all(name.removeprefix("-").isdecimal() for name in class_names)
    index = {str(k): k for k in range(len(class_names))} if by_number else {}
    index |= {name: k for k, name in enumerate(class_names)}
    rows = list(zip(columns["id"], spell(columns["label"], index), removed, strict=True))
    unknown = [
        f"'{label}' of {name}" for name, label, gone in rows if not gone and label not in index
    ]
    if unknown:
        known = (
            f"neither a class name nor a number in 0..{len(class_names) - 1}"
            if by_number
            else f"not a class name (classes: {first_few(class_names)})"
        )
        raise InputError(
            f"{shown(str(file))}: {count(len(unknown), 'label')} {known}: {first_few(unknown, 3)}"
        )
    return [REMOVED if gone else index[label] for _, label, gone in rows]


def _refuse_contradictions(
    file: Path, ids: Sequence[str], places: Sequence[int], classes: Sequence[int]
) -> None:
    """An id may be listed twice, but not under two labels."""
    seen: dict[int, int] = {}
    for name, place, label in zip(ids, places, classes, strict=True):
        if seen.setdefault(place, label) != label:
            raise InputError(f"{shown(str(file))} gives {shown(name)} two different labels")


def read_trusted(data: LabelledData, file: Path) -> tuple[Tensor, Tensor]:
    """Indices and true labels of the training examples in a table (`--trusted`).

    The true labels are in a column `label`; without it, the given labels are the true ones.
    """
    check_table("trusted", file)
    wanted = {"id": ID_COLUMNS, "label": LABEL_COLUMNS}
    columns = read_text_columns(file, wanted, optional=["label"])
    refuse_empty(file, "id", columns["id"])
    places = _find_places(file, columns["id"], data.train.ids)
    labels = data.train.labels[places].tolist()
    if "label" in columns:
        refuse_empty(file, "label", columns["label"])
        labels = _find_classes(file, columns, [False] * len(places), data.class_names)
        _refuse_contradictions(file, columns["id"], places, labels)
    known = dict(zip(places, labels, strict=True))
    return torch.tensor(list(known)), torch.tensor(list(known.values()))
