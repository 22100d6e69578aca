"""Pictures that occur with different labels, as `oddly clean` lists them in duplicates.csv."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddly.records.listed import read_list


@dataclass(frozen=True)
class Twin:
    """A copy of a picture that also occurs with another label."""

    group: int
    """The number of the picture."""
    words: str
    """A sentence about the other copies."""


def read_twins(run: Path) -> dict[str, Twin]:
    """All copies of pictures that occur with different labels, by id.

    Empty if the list is missing or was changed so that it cannot be read.
    """
    groups: dict[int, list[tuple[str, str]]] = {}
    try:
        for row in read_list(run / "duplicates.csv"):
            if None in (row["id"], row["given_name"]):  # a truncated row
                return {}
            # Not by the column `conflicting`: spreadsheets save it in the user's language.
            groups.setdefault(int(row["group"]), []).append((row["id"], row["given_name"]))
    except (LookupError, ValueError, TypeError):
        return {}
    return {
        id: Twin(group, words[label])
        for group, copies in groups.items()
        if len(words := _describe_others(copies)) > 1
        for id, label in copies
    }


def group_twins(run: Path, ids: Sequence[str]) -> NDArray[Any]:
    """(N,) the number of the picture, from 1, that each example is a copy of; 0 if of none."""
    twins = read_twins(run)
    if not twins:
        return np.zeros(len(ids), np.int64)
    return np.asarray([twins[id].group if id in twins else 0 for id in ids], np.int64)


def _describe_others(copies: Sequence[tuple[str, str]]) -> dict[str, str]:
    """For each label of a picture, a sentence about its copies with another label."""
    by_label: dict[str, list[str]] = {}
    for id, label in copies:
        by_label.setdefault(label, []).append(id)
    first, *later = by_label
    words = {}
    for label, own in by_label.items():
        other = first if label != first else later[0] if later else label
        others = len(copies) - len(own)
        more = f" and {others - 1:,} more" if others > 1 else ""
        words[label] = f"Same picture with another label: {other} ({by_label[other][0]}){more}"
    return words
