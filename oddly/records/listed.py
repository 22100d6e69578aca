"""Read the lists that `oddly clean` writes, even after a spreadsheet has saved them again."""

from __future__ import annotations

import csv
import io
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from contextlib import suppress
from pathlib import Path


def read_list(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV; empty if it is missing or damaged.

    A spreadsheet may have saved it in another encoding (at worst, some characters are lost), and
    with semicolons or tabs instead of commas.
    """
    with suppress(OSError, csv.Error):
        content = path.read_bytes()
        is_wide = content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
        text = content.decode("utf-16" if is_wide else "utf-8-sig", "replace")
        delimiter = max(",;\t", key=text.partition("\n")[0].count)  # our columns' names hold none
        return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
    return []


def count_unread(run: Path) -> tuple[int, int]:
    """How many images could not be read, and how many folders."""
    names = [str(row.get("id")) for row in read_list(run / "unreadable.csv")]
    folders = sum(name.endswith("/") for name in names)
    return len(names) - folders, folders
