"""Ours: does a large learning rate separate right from wrong labels?

Paper: its first claim, section "Separating mislabeled examples via SGD". It says "large learning
rates (e.g. 0.1)" and shows no smaller one for comparison.
Command: oddly reproduce learning_rate --next --minutes 25 --data-dir DIR --out figures
Cost: four trunks up to epoch 75, about 6 minutes of an H200 each; the two at 0.1 are shared with
Table 1.
Numbers to match: none. The claim holds if KS(noise, normal) is larger at 0.1 than at 0.01.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oddly.experiments.base import Cell, Drawing, Experiment, Job
from oddly.experiments.drawing import draw_lines
from oddly.experiments.looks import follow, look_cell, measured
from oddly.experiments.sizes import Size

DATA = {"CIFAR-100 40 %": "cifar100", "CIFAR-10 40 %": "cifar10"}
EPOCHS = (10, 25, 50, 75)
SHARES = (1.0, 0.1)  # of the recipe's rate: 0.1 and 0.01 in the paper's
separation = measured("ks_noise_normal")


def rate_of(size: Size, share: float) -> float:
    return round(share * float(size.options["learning_rate"]), 10)  # 0.01, not 0.010000000000000002


def make_job(size: Size, data: str, share: float, seed: int) -> Job:
    rate = rate_of(size, share)
    trunk = size.trunk(data, seed, noise=0.4, learning_rate=rate)
    return follow(trunk, *(size.at(epoch) for epoch in EPOCHS))


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    data = {"CIFAR-10 40 %": "cifar10"} if size.name == "small" else DATA
    made = []
    for column, source in data.items():
        for share in SHARES:
            jobs = tuple(make_job(size, source, share, seed) for seed in range(seeds))
            rate = rate_of(size, share)
            for epoch in EPOCHS:
                row = f"rate {rate:g}, epoch {size.at(epoch)}"
                made.append(look_cell(row, column, jobs, size.at(epoch), separation))
    return made


def draw(drawing: Drawing) -> Sequence[Path]:
    """Separation by epoch, seed 0."""
    size, written = drawing.size, []
    for column, source in DATA.items():
        series = {}
        for share in SHARES:
            job = make_job(size, source, share, 0)
            if result := drawing.store.find(job.config):
                points = [(float(e), separation(s)) for e, s in result.snapshots.items()]
                known = [(x, y) for x, y in points if y is not None]
                series[f"rate {job.config.learning_rate:g}"] = known
        if series:
            name = column.split()[0].lower()
            path = drawing.out / f"learning_rate_{size.name}_{name}.svg"
            axes = ("epoch", "KS distance")
            written.append(draw_lines(path, f"Right against wrong, {column}", series, axes))
    return written


EXPERIMENT = Experiment(
    name="learning_rate",
    title="Does a large learning rate separate? (ours)",
    cost="four trunks to epoch 75, about 6 min of an H200 each",
    cells=cells,
    unit="KS(noise, normal)",
    digits=3,
    draw=draw,
)
