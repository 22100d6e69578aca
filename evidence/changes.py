"""Constants of the default, with what `changed_constants.py` changes them to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from unittest import mock

from oddly.core.ledger import LossLedger
from oddly.core.rule import PERCENTILES

DECAY, USUAL = "ledger.LossLedger.decay", "rule.PERCENTILES"
EPOCHS: dict[str, tuple[float, ...]] = {
    "sentinels.SHARPNESS": (0, 2, 4, 16),
    DECAY: (0.5, 0.8, 0.97),
    "sentinels.LATEST": (0.5, 0.65, 0.95),
    "sentinels.EARLIEST": (1 / 6, 1 / 2, 1),
    "sentinels.GOOD_F1": (0.95, 0.99),
    "sentinels.FALLEN": (0.8, 0.95),
}
"""Constants of the time before the verdict, with what they are changed to."""
JUDGING: dict[str, tuple[float, ...]] = {
    USUAL: (3, 10),
    "percentile.VAGUE_F1": (0.74, 0.85),
    "percentile.RANDOM_F1": (0.83, 0.92),
    "percentile.FEW_WRONG": (12, 22),
    "percentile.FALL": (12, 46),
    "percentile.LEAST": (6, 10),
    "percentile.MOST": (10, 20),
    "percentile.MEANT": (0, 0.5),
    "percentile.ONE_PAIR": (0.15, 1),
    "cut.SHALLOW": (0, 0.6, 0.9),
    "cut.SMOOTHING": (0.03, 0.12),
    "cut.HOPELESS": (0.8, 0.95),
    "confusion.PULL": (25, 400, 1e9),
    "confusion.STRENGTH": (0.1, 0.75, 3),
    "confusion.CAUTION": (3, 30),
    "confusion.LARGEST": (1, 4),
    "confusion.TURNS": (6, 24),
    "confusion.SIZES": (0, 0.1, 0.4),
    "confusion.ALIKE": (2, 5),
    "learnt.SOUND": (0.05, 0.2),
    "learnt.LEARNT": (5.5, 7.5),
    "learnt.VAGUE": (0, 6.5, 26),
    "learnt.SURE": (7.5, 9.5),
    "learnt.HARDLY": (0.8, 0.97),
    "learnt.NOTHING": (4, 6),
    "one_way.CERTAIN": (1, 3),
    "one_way.TIMES": (1.2, 1.8),
    "one_way.MOSTLY": (0.3, 0.7),
    "one_way.USUAL": (0.15, 0.5),
    "called.LEAST": (0.04, 0.16),
    "called.BLURRED": (0.08, 0.18),
    "called.SUREST": (0.1, 0.5),
    "called.FEWEST": (1, 30),
    "verdict.FEWEST_EXAMPLES": (1, 20),
}
"""Constants of the verdict."""
USERS = {
    "sentinels.GOOD_F1": ("percentile",),
    "cut.SHALLOW": ("one_way",),
    "learnt.SURE": ("judging",),
    "learnt.NOTHING": ("judging",),
    "verdict.FEWEST_EXAMPLES": ("judging",),
}
"""Modules that import a constant; `learnt.SURE` in `sentinels` decides when, and stays."""
SCRATCH = (
    *(f"{kind} {rate}" for kind in ("uniform", "instance", "pair") for rate in (20, 40)),
    *(f"{kind} 40" for kind in ("one", "three", "both ways")),
    "clean",
)
SHORT = (("uniform 40", 2), ("uniform 40", 3), ("uniform 40", 4), ("uniform 70", 8))
"""Labels, epochs: networks that have learnt little."""


@contextmanager
def changed(constant: str, value: float) -> Iterator[None]:
    home, _, name = constant.partition(".")
    with ExitStack() as stack:
        if constant == DECAY:
            begin = vars(LossLedger)["__init__"]
            defaults = (*begin.__defaults__[:-1], value)
            stack.enter_context(mock.patch.object(begin, "__defaults__", defaults))
        elif constant == USUAL:
            stack.enter_context(mock.patch.dict(PERCENTILES, sentinels=value))
        else:
            for each in (home, *USERS.get(constant, ())):
                module = import_module(f"oddly.core.{each}")
                stack.enter_context(mock.patch.object(module, name, value))
        yield
