"""Table 2: merged classes of unequal parts, with no wrong labels (CIFAR-50 and CIFAR-20).

Paper: section "Non-Homogeneous Labels", `tab:cifar-merge`. Settings as in Table 1.
Command: oddly reproduce table2 --next --minutes 25 --data-dir DIR
Cost: not measured; by Table 1's speed about 2 hours of an H200 per seed (six trunks with one fork
each, 10 to 25 minutes per pair). It needs at least three seeds, because ODD gains only 0.2 to 0.7.
Numbers to match: `PAPER` below.
"""

from __future__ import annotations

from collections.abc import Sequence

from oddly.experiments.base import Cell, Experiment, PaperNumber, method_job
from oddly.experiments.sizes import Size

PAPER = {
    "cifar50:30": {"ERM": (78.5, 0.1), "ODD": (79.0, 0.1)},
    "cifar50:50": {"ERM": (77.9, 0.1), "ODD": (78.6, 0.2)},
    "cifar50:70": {"ERM": (77.5, 0.1), "ODD": (78.1, 0.1)},
    "cifar20:30": {"ERM": (86.4, 0.2), "ODD": (86.6, 0.1)},
    "cifar20:50": {"ERM": (85.1, 0.1), "ODD": (85.4, 0.2)},
    "cifar20:70": {"ERM": (84.4, 0.3), "ODD": (84.7, 0.2)},
}
BY_VALUE = ("cifar50:50", "cifar20:50", "cifar50:70", "cifar20:70", "cifar50:30", "cifar20:30")


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    wanted = BY_VALUE[:1] if size.name == "small" else BY_VALUE
    made = []
    for data in wanted:
        for row, printed in PAPER[data].items():
            jobs = tuple(method_job(size, row, data, seed) for seed in range(seeds))
            made.append(Cell(row, _name(data), PaperNumber(*printed), jobs))
    return made


def _name(data: str) -> str:
    classes, percent = data.removeprefix("cifar").split(":")
    return f"CIFAR-{classes} c = {percent}"


EXPERIMENT = Experiment(
    name="table2",
    title="Merged classes of unequal size",
    cost="about 2 h of an H200 per seed, three seeds at least",
    cells=cells,
)
