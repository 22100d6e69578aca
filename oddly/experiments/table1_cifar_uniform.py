"""Table 1: test accuracy on CIFAR-10 and CIFAR-100 with uniform label noise.

Paper: section "CIFAR-10 and CIFAR-100", `tab:cifar-val`. WRN-28-10, 200 epochs, batch 128,
momentum 0.9, weight decay 5e-4, E = 75, p = 10. The authors' slides add a cosine schedule from 0.1.
Command: oddly reproduce table1 --next --minutes 25 --data-dir DIR
Cost: about 40 minutes of an H200 per noisy column and seed for the first four rows (plain training
alone took 15.7); a clean column takes longer, as nothing is removed.
Numbers to match: `PAPER` below. The row "ODD (our default)" is ours alone.

The paper leaves some details open. We use dropout 0.3 (see `recipe`), Nesterov momentum, crops
after padding by 4 pixels, flips and mixup's alpha = 1, and take the losses from the training steps
of epoch E. Two extra rows show one column without dropout.
ERM, ODD and ODD + mixup share one trunk: plain training whose losses are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oddly.experiments.base import Cell, Experiment, Job, PaperNumber
from oddly.experiments.sizes import MINUTE, Size

COLUMNS = {
    "CIFAR-10 0 %": ("cifar10", 0.0),
    "CIFAR-10 20 %": ("cifar10", 0.2),
    "CIFAR-10 40 %": ("cifar10", 0.4),
    "CIFAR-100 0 %": ("cifar100", 0.0),
    "CIFAR-100 20 %": ("cifar100", 0.2),
    "CIFAR-100 40 %": ("cifar100", 0.4),
}
PAPER: dict[str, tuple[tuple[float, ...] | None, ...]] = {
    "ERM": ((96.3, 0.1), (88.5, 0.1), (84.4, 0.5), (81.6, 0.2), (69.6, 0.1), (55.7, 0.5)),
    "mixup": ((97.0, 0.1), (93.9, 0.3), (91.7, 0.1), (81.4, 0.3), (71.2, 0.3), (59.4, 0.4)),
    "GCE": (None, (89.9, 0.2), (87.1, 0.2), None, (66.8, 0.4), (62.7, 0.2)),
    "Luo": ((96.2, 0.1), (96.2, 0.2), (94.9, 0.2), (81.4, 0.2), (80.6, 0.5), (74.2, 0.5)),
    "Ren": (None, None, (86.9, 0.2), None, None, (61.4, 2.0)),
    "MentorNet": (None, (92.0,), (89.0,), None, (73.0,), (68.0,)),
    "ODD": ((96.2, 0.1), (94.7, 0.1), (92.8, 0.2), (81.8, 0.1), (77.2, 0.1), (72.4, 0.4)),
    "ODD + mixup": ((97.2, 0.1), (95.6, 0.1), (95.5, 0.2), (82.5, 0.1), (79.1, 0.1), (76.5, 0.4)),
    "ODD (our default)": (None,) * 6,
}
# What is trained first: the hardest column, and there the rows that share its trunk.
BY_VALUE = (
    *("CIFAR-100 40 %", "CIFAR-10 40 %", "CIFAR-100 20 %", "CIFAR-10 20 %"),
    *("CIFAR-100 0 %", "CIFAR-10 0 %"),
)
FIRST = ("ERM", "ODD", "ODD + mixup", "ODD (our default)")
OTHERS = {"mixup": "mixup", "GCE": "gce", "Luo": "luo", "Ren": "ren", "MentorNet": "mentornet_dd"}
TRUSTED = 1000  # labels known to be clean, for the rows the paper marks with a star
NO_DROPOUT = ", no dropout"
# With `--fast`: 100 epochs, after 14 on what was kept; or as many images in 68 epochs of all.
CUT = {"cut": True, "smoothing": 0.1}
ODD_CUT = {"epochs": 100, "method": "odd_mixup", "prune_after": 14, "rounds": 1, **CUT}
MINUTE_ROWS: dict[str, dict[str, Any]] = {
    "ERM, one minute": {"epochs": 68, "restart": 0, "method": "erm"},
    "CutMix, one minute": {"epochs": 68, "restart": 0, "method": "mixup", **CUT},
    "ODD (our default) + CutMix, one minute": ODD_CUT,
    "ODD (our default) + CutMix, mirrored edge, one minute": {**ODD_CUT, "reflect": True},
}
SMALL_CELLS = [(row, "CIFAR-10 40 %") for row in FIRST[:2]]


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    wanted = [(row, column) for column in BY_VALUE for row in FIRST]
    wanted += [(row, column) for row in OTHERS for column in BY_VALUE]
    if size.options.get("dropout"):
        wanted += [(row + NO_DROPOUT, BY_VALUE[0]) for row in ("ODD", "ODD + mixup")]
    if size.name == "fast":
        wanted += [(row, "CIFAR-10 40 %") for row in MINUTE_ROWS]
    if size.name == "small":
        wanted = SMALL_CELLS
    return [make_cell(size, row, column, seeds) for row, column in wanted]


def make_cell(size: Size, row: str, column: str, seeds: int) -> Cell:
    printed = PAPER[row][list(COLUMNS).index(column)] if row in PAPER else None
    jobs = tuple(make_job(size, row, *COLUMNS[column], seed) for seed in range(seeds))
    return Cell(row, column, PaperNumber(*printed) if printed else None, jobs)


def make_job(size: Size, row: str, data: str, noise: float, seed: int) -> Job:
    if row in MINUTE_ROWS:
        return Job(size.config(data, seed, noise=noise, **MINUTE, **MINUTE_ROWS[row]))
    changed = {"dropout": 0.0} if row.endswith(NO_DROPOUT) else {}
    row = row.removesuffix(NO_DROPOUT)
    trunk = size.trunk(data, seed, noise=noise, **changed)
    if row == "ERM":
        return Job(trunk)
    if row in ("ODD", "ODD + mixup"):
        method = "odd" if row == "ODD" else "odd_mixup"
        return Job(size.paper(data, seed, noise=noise, method=method, **changed), trunk)
    if row == "ODD (our default)":
        return Job(size.config(data, seed, noise=noise, method="odd", **size.default_settings))
    trusted = {"trusted": TRUSTED} if row in ("Ren", "MentorNet") else {}
    return Job(size.config(data, seed, noise=noise, method=OTHERS[row], **trusted))


EXPERIMENT = Experiment(
    name="table1",
    title="Uniform noise on CIFAR-10 and CIFAR-100",
    cost="about 40 min of an H200 per noisy column and seed (first four rows)",
    cells=cells,
)
