"""Freed memory is used again in processes of the command line."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from oddly.cli import memory
from oddly.cli.memory import M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, SPARE, keep_freed_memory

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
OURS = ("MALLOC_", "GLIBC_TUNABLES")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)


def count_faults(first: str) -> int:
    """Pages that the system had to hand out for the same blocks, twenty times."""
    script = [sys.executable, "-c", FAULTS.format(first=first)]
    return int(subprocess.run(script, capture_output=True, text=True, check=True).stdout)


def is_new_glibc() -> bool:
    name, version = platform.libc_ver()
    return name == "glibc" and tuple(map(int, version.split("."))) >= (2, 35)


@pytest.mark.skipif(not is_new_glibc(), reason="older glibc keeps blocks up to 32 MB")
def test_the_system_hands_out_a_page_once() -> None:
    kept, not_kept = count_faults("keep_freed_memory()"), count_faults("")
    assert kept < 0.1 * not_kept
    assert not_kept > 100  # huge pages at the least


Calls = list[tuple[int, int]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Calls]:
    """What is asked of a mallopt that refuses thresholds beyond a limit."""

    def until(limit: int) -> Calls:
        made: Calls = []

        def mallopt(what: int, value: int) -> int:
            made.append((what, value))
            return int(what != M_MMAP_THRESHOLD or value <= limit)

        monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=mallopt))
        return made

    return until


def test_what_is_asked_of_new_and_old_glibc(calls: Callable[[int], Calls]) -> None:
    most, less = memory.LARGE
    for limit, expected in (
        (most, [(M_MMAP_THRESHOLD, most), (M_TRIM_THRESHOLD, SPARE)]),
        (less, [(M_MMAP_THRESHOLD, most), (M_MMAP_THRESHOLD, less), (M_TRIM_THRESHOLD, SPARE)]),
        (0, [(M_MMAP_THRESHOLD, most), (M_MMAP_THRESHOLD, less)]),
    ):
        made = calls(limit)
        keep_freed_memory()
        assert made == expected


@pytest.mark.parametrize(
    ("name", "value", "is_left"),
    [
        ("MALLOC_TRIM_THRESHOLD_", "1000", True),
        ("MALLOC_MMAP_THRESHOLD_", "1000", True),
        ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=1000", True),
        ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2", False),
        ("MALLOC_ARENA_MAX", "2", False),
    ],
)
def test_what_the_environment_says_is_left_alone(
    name: str,
    value: str,
    is_left: bool,
    calls: Callable[[int], Calls],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(name, value)
    made = calls(2**40)
    keep_freed_memory()
    assert (made == []) is is_left


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_other_libraries_of_c(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def missing(name: None) -> None:
        asked.append(name)
        raise error("mallopt")

    monkeypatch.setattr(memory.ctypes, "CDLL", missing)
    keep_freed_memory()  # without a word
    assert asked == [None]
