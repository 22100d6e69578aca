"""Memory that a network's layers share in turn, kept between them."""

from __future__ import annotations

import ctypes
import os

# glibc's names, <malloc.h>
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGE = (64 * 2**20, 32 * 2**20)  # bytes: blocks beyond go back at once; older glibc takes the less
SPARE = 256 * 2**20  # freed bytes that may stay at the heap's end
SET = ("MALLOC_MMAP_", "MALLOC_TRIM_", "MALLOC_TOP_PAD_")


def keep_freed_memory() -> None:
    """Let freed blocks be used again instead of going back to the system.

    A layer's output is some megabytes. By default glibc asks the system for such a block and gives
    it back at once, and the system clears it page by page every time: without that a CPU reads
    images with a frozen network 1.4 times as fast and trains a tenth faster. Other libraries of C
    have no such knob, and whoever has set it in the environment wants it so.
    """
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if "glibc.malloc" in tunables or any(name.startswith(SET) for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc's; Windows
        return
    # Either switches glibc's own learning off: never the second without the first.
    if any(mallopt(M_MMAP_THRESHOLD, size) for size in LARGE):
        mallopt(M_TRIM_THRESHOLD, SPARE)
