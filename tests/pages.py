"""The pages' tables and words, and the stored results that they are compared with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def stored(name: str) -> dict[str, Any]:
    return dict(json.loads((ROOT / "oddly/results" / name).read_text()))


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table that follows a line with `heading`, stars and spaces taken off."""
    lines = (ROOT / page).read_text().split(heading, 1)[1].splitlines()[2:]
    table = []
    for line in lines:
        if not line.startswith("|"):
            break
        table.append([cell.strip(" *") for cell in line.strip("|").split("|")])
    return table


def words_of(page: str) -> str:
    return " ".join((ROOT / page).read_text().split())


def short(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


CASES = {
    "CIFAR-10, uniform 40 %": "cifar10-uniform-40",
    "CIFAR-10, uniform 20 %": "cifar10-uniform-20",
    "CIFAR-100, uniform 40 %": "cifar100-uniform-40",
    "CIFAR-100, uniform 20 %": "cifar100-uniform-20",
    "CIFAR-10N aggregate": "cifar10n-aggregate",
    "CIFAR-10N random1": "cifar10n-random1",
    "CIFAR-10, asymmetric 40 %": "cifar10-asymmetric-40",
    "CIFAR-10, asymmetric 20 %": "cifar10-asymmetric-20",
    "CIFAR-10, instance 40 %": "cifar10-instance-40",
    "CIFAR-10, instance 20 %": "cifar10-instance-20",
    "CIFAR-100, instance 40 %": "cifar100-instance-40",
    "CIFAR-100, instance 20 %": "cifar100-instance-20",
    "CIFAR-100, asymmetric 20 %": "cifar100-asymmetric-20",
    "CIFAR-100, asymmetric 40 %": "cifar100-asymmetric-40",
    "CIFAR-10, uniform 40 %, ConvNeXt V2 ¹": "cifar10-uniform-40-layernorm",
}
LONG = "reproduce/cifar100-uniform40-odd-wrn-28-10-seed0-f857a3bb.json"
"""Our default in the paper's setting, CIFAR-100 with 40 % uniform noise."""


def detected(case: str, method: str, seed: int = 0) -> dict[str, Any]:
    return dict(stored(f"detection/{case}--{method}--seed{seed}.json")["figures"])


def shown_or_not_run(case: str, method: str, show: Callable[[dict[str, Any]], str]) -> str:
    there = (ROOT / f"oddly/results/detection/{case}--{method}--seed0.json").exists()
    return show(detected(case, method)) if there else "not run"
