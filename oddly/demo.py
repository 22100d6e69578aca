"""`oddly demo`: the whole idea in half a minute."""

from __future__ import annotations

from pathlib import Path

from oddly.engine.api import train
from oddly.engine.watch import Watcher
from oddly.records import Run

METHODS = ("erm", "odd")


def run_demo(out: Path, watcher: Watcher) -> list[Run]:
    """Digits with 40 % uniform label noise, by ERM and by ODD, into `out`/erm and `out`/odd."""
    return [
        train(
            "digits",
            out / method,
            method=method,
            noise=0.4,
            device="cpu",
            overwrite=True,
            watcher=watcher,
        )
        for method in METHODS
    ]
