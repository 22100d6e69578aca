"""The path of a run's data, and a name made from it, however the path was written."""

from __future__ import annotations

import os
from pathlib import Path

from oddly.data import DATASETS
from oddly.errors import shown

LONGEST = 50  # characters of up to 4 bytes; names have at most 255 bytes, and more is appended


def locate(data: str) -> str:
    """The real path if `data` is a file or folder; a dataset's name, or anything else, as it is."""
    path = os.path.expanduser(data)
    return data if data in DATASETS or not os.path.exists(path) else os.path.realpath(path)


def name_after(data: str) -> str:
    """A name for run folders: the last part of the path, without the suffix of a table."""
    path = Path(locate(data))
    name = path.stem if os.path.isfile(path) else path.name
    return shown(name.replace(":", "-"))[:LONGEST] or "data"
