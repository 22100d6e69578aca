"""The recorded heads: which images, labels and head, by the names that the tables have for them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from evidence.features import Features, cifar10, cifar100
from evidence.heads import HIDDEN_EPOCHS
from evidence.labels import Labels
from evidence.recordings import Recording, record

Loads = Mapping[str, Callable[[], Features]]
TAIL = 50  # a long tail's first class is so many times its last


@dataclass(frozen=True)
class Case:
    """What is recorded: features, labels (`Features.label`), head."""

    name: str
    kind: str
    data: str = "cifar10"
    long_tailed: bool = False
    linear: bool = False
    adam: bool = False

    def record(self, loads: Loads) -> Recording:
        images, recipe = loads[self.data](), HIDDEN_EPOCHS
        given = images.label(self.kind)
        if self.long_tailed:
            stay = draw_tail(given)
            images, given = images.take(stay), given[stay]
        if self.linear:
            recipe = replace(recipe, learning_rate=0.01)
        if self.adam:
            recipe = replace(recipe, epochs=8, learning_rate=1e-3)
        return record(images, given, recipe, self.linear, self.adam)


PEOPLE = "CIFAR-10N aggregate"
WEAK = "a weak classifier's mistakes"
CHOSEN = (
    Case("CIFAR-10, asymmetric 40 %", "asymmetric 40"),
    Case(f"{PEOPLE}, AdamW, 8 epochs", "aggregate", adam=True),
    Case(PEOPLE, "aggregate"),
    Case("CIFAR-10, clean", "clean"),
    Case(f"{PEOPLE}, linear head", "aggregate", linear=True),
    Case(f"{PEOPLE}, classes of 1,078 to 19", "aggregate", long_tailed=True),
    Case("CIFAR-10, uniform 20 %, classes of 1,025 to 20", "uniform 20", long_tailed=True),
    Case("CIFAR-10N random1", "random1"),
    Case("CIFAR-10, uniform 20 %", "uniform 20"),
    Case("CIFAR-10, uniform 40 %", "uniform 40"),
)
HELD_OUT = (
    *(Case(f"CIFAR-10, {WEAK} {rate} %", f"weak {rate}") for rate in (10, 20, 40)),
    Case("CIFAR-10, asymmetric 20 %", "asymmetric 20"),
    *(Case(f"CIFAR-100, {WEAK} {rate} %", f"weak {rate}", "cifar100") for rate in (20, 40)),
    *(
        Case(f"CIFAR-100, asymmetric {rate} %", f"asymmetric {rate}", "cifar100")
        for rate in (20, 40)
    ),
    Case("CIFAR-100, clean", "clean", "cifar100"),
    Case("CIFAR-100, uniform 40 %", "uniform 40", "cifar100"),
)


def draw_tail(given: Labels, classes: int = 10, ratio: int = TAIL) -> Labels:
    """Places of what stays when each class keeps fewer than the one before."""
    draw, stay = np.random.RandomState(3), []
    for k in range(classes):
        places = np.flatnonzero(given == k)
        draw.shuffle(places)
        stay += list(places[: int(len(places) * ratio ** (-k / (classes - 1)))])
    return np.sort(stay)


def loads_from(args: Namespace) -> Loads:
    """What loads the features, once each."""
    return {
        "cifar10": cache(partial(cifar10, args.data_dir, args.out)),
        "cifar100": cache(partial(cifar100, args.data_dir, args.out)),
    }


def with_data_dir(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("--data-dir", type=Path, help="where the official folders lie")
    return parser
