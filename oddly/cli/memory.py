"""Keep freed memory in the process, for the next layer of a network."""

from __future__ import annotations

import ctypes
import os

# glibc's names, <malloc.h>
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGE = (64 * 2**20, 32 * 2**20)  # bytes: larger blocks are returned at once; old glibc: 32 MiB max
SPARE = 256 * 2**20  # freed bytes to keep at the end of the heap
SET = ("MALLOC_MMAP_", "MALLOC_TRIM_", "MALLOC_TOP_PAD_")  # environment variables of the user


def keep_freed_memory() -> None:
    """Reuse freed blocks of memory instead of returning them to the system.

    The output of a layer takes some megabytes. By default, glibc gets such a block from the system
    and returns it right away, and the system clears it page by page each time. Without that, a CPU
    embeds images 1.4 times as fast and trains a tenth faster. Other C libraries have no such
    setting, and settings in the user's environment are respected.
    """
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if "glibc.malloc" in tunables or any(name.startswith(SET) for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc, or Windows
        return
    # Either call turns off glibc's dynamic thresholds: never make the second without the first.
    if any(mallopt(M_MMAP_THRESHOLD, size) for size in LARGE):
        mallopt(M_TRIM_THRESHOLD, SPARE)
