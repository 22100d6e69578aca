"""Names as people read them: one-line lists for messages, natural order for folders and classes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oddly.errors import shown


def first_few(names: Sequence[str], limit: int = 10) -> str:
    """`a, b, c`, cut after `limit` names."""
    listed = ", ".join(shown(name) for name in names[:limit])
    return listed + (", …" if len(names) > limit else "")


def natural(name: str) -> tuple[str, str]:
    """Sort key under which `img2` comes before `img10`; the name decides ties (`01`, `1`)."""
    return re.sub("[0-9]+", lambda number: number[0].zfill(20), name), name


def storable(name: str) -> str:
    """The name as valid UTF-8: bytes that are none (old archives) become visible escapes."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
