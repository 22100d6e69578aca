"""Names of folders and classes: in the order that people expect, and as files can hold them."""

from __future__ import annotations

import re


def natural(name: str) -> tuple[str, str]:
    """Sort key under which `img2` comes before `img10`; the name decides ties (`01`, `1`)."""
    return re.sub("[0-9]+", lambda number: number[0].zfill(20), name), name


def storable(name: str) -> str:
    """The name as valid UTF-8: bytes that are none (old archives) become visible escapes."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
