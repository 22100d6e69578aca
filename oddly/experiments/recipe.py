"""Ours: which detail of the recipe decides when CIFAR-100 is memorised?

Paper: Table 1, CIFAR-100 with 40 % noise, 72.4 % with E = 75. A WRN-28-10 without dropout has begun
to memorise by then, and recall falls. The paper leaves some details open; each row changes one.
Found so far: dropout 0.3, as the network's authors use it, brings most of the recall back.
Command: oddly reproduce recipe --next --minutes 25 --data-dir DIR
Cost: one trunk up to epoch 75 per row, about 6 minutes of an H200 each (in fp32 perhaps 16, not
measured); the first row is Table 1's own trunk. `--fast` asks a WRN-16-8 under the same schedule in
a third of the time: if recall falls in its first row too, from epoch 50 to 75, its other rows tell
which of them are worth a WRN-28-10.
Numbers to match: the paper's precision .88 to .92 and recall .84 to .88 (Figure 11, text).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from oddly.experiments.base import Cell, Experiment
from oddly.experiments.looks import accuracy_at, at_percentile, by_sweep, follow, look_cell
from oddly.experiments.sizes import FULL, SMALL, Size

VARIANTS: dict[str, Mapping[str, Any]] = {
    "as in table1": {},
    "no dropout": {"dropout": 0.0},
    "steps, not cosine": {"schedule": "step"},
    "no Nesterov": {"nesterov": False},
    "weight decay 1e-3": {"weight_decay": 1e-3},
    "no flips": {"flip": False},
    "fp32": {"precision": "fp32"},
}
EPOCHS = (50, 75)
FIGURES = ("precision", "recall")
SWEEP = "losses of a sweep after E"  # of the first row's run
STAND_IN = replace(
    FULL,
    name="fast",
    options={**FULL.options, "model": "wrn-16-8"},
    cost="about 3 min of an H200 each (a guess)",
)


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    made = []
    for row, options in VARIANTS.items():
        if size.name == "small" and row not in ("as in table1", "no Nesterov"):
            continue  # nor has its network any dropout
        trunks = [size.trunk("cifar100", seed, noise=0.4, **options) for seed in range(seeds)]
        jobs = tuple(follow(trunk, *(size.at(e) for e in EPOCHS)) for trunk in trunks)
        for epoch in EPOCHS:
            at = size.at(epoch)
            for figure in FIGURES:
                column = f"{figure}, E = {at}"
                made.append(look_cell(row, column, jobs, at, at_percentile(10.0, figure)))
        at = size.prune_after
        made.append(Cell(row, f"accuracy, %, epoch {at}", None, jobs, accuracy_at(at)))
        if not options:
            for figure in FIGURES:
                column = f"{figure}, E = {at}"
                made.append(look_cell(SWEEP, column, jobs, at, by_sweep(figure)))
    return made


EXPERIMENT = Experiment(
    name="recipe",
    title="What decides when CIFAR-100 is memorised? (ours; 40 %, p = 10)",
    cost="one trunk to epoch 75 per row, about 6 min of an H200 each",
    cells=cells,
    sizes={"full": FULL, "fast": STAND_IN, "small": SMALL},
    unit="shares",
    digits=3,
    about="Paper (figure 11, text): precision .88 to .92, recall .84 to .88.",
)
