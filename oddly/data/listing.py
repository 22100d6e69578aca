"""Names of folders and classes: natural order, and names that are valid UTF-8."""

from __future__ import annotations

import re


def natural(name: str) -> tuple[str, str]:
    """Sort key that puts `img2` before `img10`; the name breaks ties (`01`, `1`)."""
    return re.sub("[0-9]+", lambda number: number[0].zfill(20), name), name


def storable(name: str) -> str:
    """The name as valid UTF-8: invalid bytes (from old archives) become visible escapes."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
