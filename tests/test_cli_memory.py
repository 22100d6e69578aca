"""Freed memory is used again in processes of the command line."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
from typing import Any

import pytest

from oddly.cli import memory
from oddly.cli.memory import keep_freed_memory

FAULTS = """
import resource, torch
from oddly.cli.memory import keep_freed_memory
{first}
def take() -> None:
    # 40 MB each: below 32 MB glibc may learn by itself to keep them.
    first, second = torch.ones(10_000_000), torch.ones(10_000_000)
for _ in range(5):
    take()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    take()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def count_faults(first: str) -> int:
    """Pages that the system had to hand out for the same blocks, twenty times."""
    script = [sys.executable, "-c", FAULTS.format(first=first)]
    return int(subprocess.run(script, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a knob of glibc")
def test_the_system_hands_out_a_page_once() -> None:
    kept, not_kept = count_faults("keep_freed_memory()"), count_faults("")
    assert kept < 0.1 * not_kept
    assert not_kept > 100  # huge pages at the least


def test_what_the_environment_says_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1000")
    monkeypatch.setattr(ctypes, "CDLL", None)  # would not do to be called
    keep_freed_memory()


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_other_libraries_of_c(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> None:
        raise error("mallopt")

    monkeypatch.setattr(memory.ctypes, "CDLL", missing)
    keep_freed_memory()
