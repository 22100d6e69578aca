"""Pictures that occur under different labels, as `oddly clean` lists them in duplicates.csv."""

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
    """A copy of a picture that occurs under another label too."""

    group: int
    """Which picture."""
    words: str


def read_twins(run: Path) -> dict[str, Twin]:
    """Every copy of a picture that occurs under different labels, by its id.

    None where the list is missing, or somebody has changed it beyond recognition.
    """
    groups: dict[int, list[tuple[str, str]]] = {}
    try:
        for row in read_list(run / "duplicates.csv"):
            if row["conflicting"].lower() == "true":  # TRUE once a spreadsheet has saved it
                groups.setdefault(int(row["group"]), []).append((row["id"], row["given_name"]))
    except (LookupError, ValueError, AttributeError):
        return {}
    return {
        id: Twin(group, _describe_others([other for other in copies if other[1] != given]))
        for group, copies in groups.items()
        for id, given in copies
        if len({label for _, label in copies}) > 1
    }


def group_twins(run: Path, ids: Sequence[str]) -> NDArray[Any]:
    """(N,) which picture each is a copy of, counted from 1; 0 where it is of none."""
    twins = read_twins(run)
    if not twins:
        return np.zeros(len(ids), np.int64)
    return np.asarray([twins[id].group if id in twins else 0 for id in ids], np.int64)


def _describe_others(others: Sequence[tuple[str, str]]) -> str:
    """Where the same picture bears another label."""
    id, label = others[0]
    more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
    return f"Same picture with another label: {label} ({id}){more}"
