"""`oddly demo`: the whole idea in half a minute."""

from __future__ import annotations

from pathlib import Path

import torch

from oddly.engine.api import train
from oddly.engine.watch import Watcher
from oddly.records import Run

METHODS = ("erm", "odd")


def run_demo(out: Path, watcher: Watcher) -> list[Run]:
    """Digits with 40 % uniform label noise, by ERM and by ODD, into `out`/erm and `out`/odd."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the network is too small for two, which are slow on a busy machine
    try:
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
    finally:
        torch.set_num_threads(threads)
