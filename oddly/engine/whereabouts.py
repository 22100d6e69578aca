"""Where the data of a run lie and what its folder is called after, however somebody spelt them."""

from __future__ import annotations

import os
from pathlib import Path

from oddly.data import DATASETS
from oddly.errors import shown

LONGEST = 50  # letters of up to four bytes; a file system takes 255 bytes, and more is appended


def locate(data: str) -> str:
    """A dataset's name as it is; else the one real path of that file or folder, if it is there."""
    path = os.path.expanduser(data)
    return data if data in DATASETS or not os.path.exists(path) else os.path.realpath(path)


def name_after(data: str) -> str:
    """The last name of a dataset or folder, that of a table without its suffix; for run folders."""
    path = Path(locate(data))
    name = path.stem if os.path.isfile(path) else path.name
    return shown(name.replace(":", "-"))[:LONGEST] or "data"
