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
    "sentinels.planting.SHARPNESS": (0, 2, 4, 16),
    DECAY: (0.5, 0.8, 0.97),
    "sentinels.planting.LATEST": (0.5, 0.65, 0.95),
    "sentinels.planting.EARLIEST": (1 / 6, 1 / 2, 1),
    "sentinels.planting.GOOD_F1": (0.95, 0.99),
    "sentinels.planting.FALLEN": (0.8, 0.95),
}
"""Constants of the time before the verdict, with what they are changed to."""
JUDGING: dict[str, tuple[float, ...]] = {
    USUAL: (3, 10),
    "sentinels.percentile.VAGUE_F1": (0.74, 0.85),
    "sentinels.percentile.RANDOM_F1": (0.83, 0.92),
    "sentinels.percentile.FEW_WRONG": (12, 22),
    "sentinels.percentile.FALL": (12, 46),
    "sentinels.percentile.LEAST": (6, 10),
    "sentinels.percentile.MOST": (10, 20),
    "sentinels.percentile.MEANT": (0, 0.5),
    "sentinels.percentile.ONE_PAIR": (0.15, 1),
    "sentinels.cut.SHALLOW": (0, 0.6, 0.9),
    "sentinels.cut.SMOOTHING": (0.03, 0.12),
    "sentinels.cut.HOPELESS": (0.8, 0.95),
    "sentinels.confusion.PULL": (25, 400, 1e9),
    "sentinels.confusion.STRENGTH": (0.1, 0.75, 3),
    "sentinels.confusion.CAUTION": (3, 30),
    "sentinels.confusion.LARGEST": (1, 4),
    "sentinels.confusion.TURNS": (6, 24),
    "sentinels.confusion.SIZES": (0, 0.1, 0.4),
    "sentinels.confusion.ALIKE": (2, 5),
    "sentinels.learnt.SOUND": (0.05, 0.2),
    "sentinels.learnt.LEARNT": (5.5, 7.5),
    "sentinels.learnt.VAGUE": (0, 6.5, 26),
    "sentinels.learnt.SURE": (7.5, 9.5),
    "sentinels.learnt.HARDLY": (0.8, 0.97),
    "sentinels.learnt.NOTHING": (4, 6),
    "sentinels.one_way.CERTAIN": (1, 3),
    "sentinels.one_way.TIMES": (1.2, 1.8),
    "sentinels.one_way.MOSTLY": (0.3, 0.7),
    "sentinels.one_way.USUAL": (0.15, 0.5),
    "sentinels.called.LEAST": (0.04, 0.16),
    "sentinels.called.BLURRED": (0.08, 0.18),
    "sentinels.called.SUREST": (0.1, 0.5),
    "sentinels.called.FEWEST": (1, 30),
    "verdict.FEWEST_EXAMPLES": (1, 20),
}
"""Constants of the verdict."""
USERS = {
    "sentinels.planting.GOOD_F1": ("sentinels.percentile",),
    "sentinels.cut.SHALLOW": ("sentinels.one_way",),
    "sentinels.learnt.SURE": ("judging",),
    "sentinels.learnt.NOTHING": ("judging",),
    "verdict.FEWEST_EXAMPLES": ("judging",),
}
"""Modules that import a constant; `learnt.SURE` in `planting` decides when, and stays."""
SCRATCH = (
    *(f"{kind} {rate}" for kind in ("uniform", "instance", "pair") for rate in (20, 40)),
    *(f"{kind} 40" for kind in ("one", "three", "both ways")),
    "clean",
)
SHORT = (("uniform 40", 2), ("uniform 40", 3), ("uniform 40", 4), ("uniform 70", 8))
"""Labels, epochs: networks that have learnt little."""


@contextmanager
def changed(constant: str, value: float) -> Iterator[None]:
    home, _, name = constant.rpartition(".")
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
