"""Every benchmark says what the paper claims, the command, the cost and the numbers to match."""

from __future__ import annotations

import importlib

import pytest

from oddly.cli.benchmark import benchmark

NAMES = [command.callback.__name__ for command in benchmark.registered_commands if command.callback]


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_explains_itself(name: str) -> None:
    told = importlib.import_module(f"oddly.benchmarks.{name}").__doc__ or ""
    for word in ("Paper:", f"Command: oddly benchmark {name}", "Cost:", "Numbers to match"):
        assert word in told, f"{name} lacks {word}"


def test_all_of_them_are_listed() -> None:
    assert len(NAMES) == 6
