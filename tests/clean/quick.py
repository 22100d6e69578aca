"""Cleaning in seconds: settings, and what to look at afterwards."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oddly.clean import Choice, CleanWatcher

QUICK = {"model": "resnet8", "epochs": 3, "prune_after": 2, "device": "cpu"}


class Listener(CleanWatcher):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.choices: dict[str, str] = {}
        self.read = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def reading(self, done: int, total: int) -> None:
        self.read = done

    def chosen(self, choices: Sequence[Choice], folder: Path) -> None:
        self.choices = {choice.name: choice.value for choice in choices}


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def frozen(tiny_weights: Path, **more: Any) -> dict[str, Any]:
    return {
        "backbone": "test_efficientnet",
        "weights": tiny_weights,
        "image_size": 32,
        "epochs": 4,
        "prune_after": 2,
        "device": "cpu",
        **more,
    }
