"""Tables with numbers per example, for methods that need them; checked for free memory."""

from __future__ import annotations

import math
import os

import torch
from torch import Tensor

from oddly.errors import InputError

SHARE = 0.8  # share of the free memory that one table may take
WORTH_SAYING = 2**20  # bytes: the size of larger tables is reported
UNITS = ("B", "kB", "MB", "GB", "TB")


class TableMaker:
    """Makes a method's (N, columns) tables and notes their size."""

    def __init__(self, method: str, num_examples: int, device: torch.device) -> None:
        self.method, self.num_examples, self.device = method, num_examples, device
        self.notes: list[str] = []

    def make(self, columns: int) -> Tensor:
        said = check_fits(f"{self.method} stores", self.num_examples, columns, self.device)
        if 4 * self.num_examples * columns >= WORTH_SAYING:
            self.notes.append(said)
        return torch.zeros(self.num_examples, columns, device=self.device)


def check_fits(who: str, rows: int, columns: int, device: torch.device) -> str:
    """A line that says how large a table is; raises if it does not fit into memory."""
    needed, free = 4 * rows * columns, free_memory(device)
    said = f"{who} {rows:,} x {columns:,} numbers: {format_bytes(needed)}"
    if needed > SHARE * free:
        raise InputError(f"{said}, but only {format_bytes(free)} are free on {device.type}")
    return said


def free_memory(device: torch.device) -> float:
    """Free bytes on the device; infinity if the system does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        with open("/proc/meminfo") as lines:  # includes what caches can free
            kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable"))
        return 1024 * int(kilobytes)
    except (OSError, StopIteration):
        return _free_pages()


def _free_pages() -> float:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, macOS not this name
        return math.inf


def format_bytes(number: float) -> str:
    """`4.2 GB`."""
    power = min(int(math.log10(max(number, 1))) // 3, len(UNITS) - 1)
    return f"{number / 1000**power:.3g} {UNITS[power]}"
