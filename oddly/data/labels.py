"""A table of id and label that replaces the given labels (`--labels`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from oddly.data.base import LabelledData
from oddly.data.listing import count, first_few, shown
from oddly.data.table import LABEL_COLUMNS, PATH_COLUMNS, SUFFIXES, read_text_columns, refuse_empty
from oddly.errors import InputError


def replace_labels(data: LabelledData, file: Path) -> LabelledData:
    """The data under the labels of a table; ids it does not list keep theirs, the truth stays."""
    if not file.is_file() or file.suffix.lower() not in SUFFIXES:
        reason = f"is no {' or '.join(SUFFIXES)} file" if file.is_file() else "does not exist"
        raise InputError(f"labels: {shown(str(file))} {reason}")
    columns = read_text_columns(file, {"id": ("id", *PATH_COLUMNS), "label": LABEL_COLUMNS})
    for name in ("id", "label"):
        refuse_empty(file, name, columns[name])
    places = _find_places(file, columns["id"], data.train.ids)
    classes = _find_classes(file, columns, data.class_names)
    _refuse_contradictions(file, columns["id"], places, classes)
    labels = data.train.labels.clone()
    labels[places] = torch.tensor(classes)
    changed = int((labels != data.train.labels).sum())
    note = f"{shown(file.name)}: {count(len(set(places)), 'label')} given, {changed:,} of them new"
    return replace(data.with_given_labels(labels), notes=(*data.notes, note))


def _find_places(file: Path, ids: Sequence[str], known: Sequence[str]) -> list[int]:
    """Where each id lies in the training split."""
    index = {name: i for i, name in enumerate(known)}
    unknown = [name for name in ids if name not in index]
    if unknown:
        raise InputError(
            f"{shown(str(file))}: {len(unknown):,} of {count(len(ids), 'id')} are not in the"
            f" training data: {first_few(unknown, 3)} (ids there look like {shown(known[0])})"
        )
    return [index[name] for name in ids]


def _find_classes(
    file: Path, columns: Mapping[str, Sequence[str]], class_names: Sequence[str]
) -> list[int]:
    """Each label as a class index: a class's name first, else its number."""
    index = {str(k): k for k in range(len(class_names))}
    index |= {name: k for k, name in enumerate(class_names)}  # where classes are called 1, 2, 3
    pairs = list(zip(columns["id"], columns["label"], strict=True))
    unknown = [f"'{label}' of {name}" for name, label in pairs if label not in index]
    if unknown:
        raise InputError(
            f"{shown(str(file))}: {count(len(unknown), 'label')} neither the name of a class nor a"
            f" number in 0..{len(class_names) - 1}: {first_few(unknown, 3)}"
        )
    return [index[label] for _, label in pairs]


def _refuse_contradictions(
    file: Path, ids: Sequence[str], places: Sequence[int], classes: Sequence[int]
) -> None:
    """An id may be listed twice, but not under two labels."""
    seen: dict[int, int] = {}
    for name, place, label in zip(ids, places, classes, strict=True):
        if seen.setdefault(place, label) != label:
            raise InputError(f"{shown(str(file))} gives {shown(name)} two different labels")


def read_trusted(data: LabelledData, file: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices and labels of the training examples a table vouches for (`--trusted`).

    A column `label` says what each one truly is; without, the given labels are vouched for.
    """
    if not file.is_file() or file.suffix.lower() not in SUFFIXES:
        reason = f"is no {' or '.join(SUFFIXES)} file" if file.is_file() else "does not exist"
        raise InputError(f"trusted: {shown(str(file))} {reason}")
    wanted = {"id": ("id", *PATH_COLUMNS), "label": LABEL_COLUMNS}
    columns = read_text_columns(file, wanted, optional=["label"])
    refuse_empty(file, "id", columns["id"])
    places = _find_places(file, columns["id"], data.train.ids)
    labels = data.train.labels[places].tolist()
    if "label" in columns:
        refuse_empty(file, "label", columns["label"])
        labels = _find_classes(file, columns, data.class_names)
        _refuse_contradictions(file, columns["id"], places, labels)
    known = dict(zip(places, labels, strict=True))
    return torch.tensor(list(known)), torch.tensor(list(known.values()))
