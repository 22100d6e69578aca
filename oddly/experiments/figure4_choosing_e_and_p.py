"""Figure 4: how to choose E and p.

Paper: section "Hyperparameter selection", `fig:hyper`. Left: the cosine schedule, with E before the
learning rate becomes small. Right: the histogram of losses with the thresholds for some p.
Command: oddly reproduce figure4 --next --minutes 25 --data-dir DIR --out figures
Cost: one trunk of CIFAR-100 with 40 % noise up to epoch 100, about 8 minutes of an H200; shared
with Table 1.
Numbers to match: none are printed. The text says that p from 1 to 30 works, the authors' slides
that E from 57 to 100 does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oddly.experiments.base import Cell, Drawing, Experiment, Job
from oddly.experiments.drawing import draw_lines, histogram_points
from oddly.experiments.looks import at_percentile, follow, look_cell
from oddly.experiments.sizes import Size
from oddly.experiments.snapshot import EDGES

EPOCHS = (25, 50, 75, 100)
PERCENTILES = (1.0, 5.0, 10.0, 30.0, 50.0)
FIGURES = ("removed", "precision", "recall", "f1")


def make_job(size: Size, seed: int) -> Job:
    return follow(size.trunk("cifar100", seed, noise=0.4), *(size.at(e) for e in EPOCHS))


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    jobs = tuple(make_job(size, seed) for seed in range(seeds))
    return [
        look_cell(
            f"E = {size.at(epoch)}, p = {p:g}",
            figure,
            jobs,
            size.at(epoch),
            at_percentile(p, figure),
        )
        for epoch in EPOCHS
        for p in PERCENTILES
        for figure in FIGURES
    ]


def draw(drawing: Drawing) -> Sequence[Path]:
    """Schedule and histogram, seed 0."""
    size = drawing.size
    result = drawing.store.find(make_job(size, 0).config)
    if result is None or str(size.prune_after) not in result.snapshots:  # broken off before E
        return []
    rates = list(zip(result.curve["epoch"], result.curve["lr"], strict=True))
    left = draw_lines(
        drawing.out / f"figure4_{size.name}_schedule.svg",
        "Learning rate by epoch",
        {"learning rate": rates},
        ("epoch", "rate"),
        {f"E = {size.prune_after}": float(size.prune_after)},
    )
    snapshot = result.snapshots[str(size.prune_after)]
    series = {
        name: histogram_points(EDGES.tolist(), counts)
        for name, counts in snapshot["histogram"].items()
    }
    cuts = {f"p = {p:g}": at_percentile(p, "threshold")(snapshot) or 0.0 for p in PERCENTILES[:4:2]}
    path = drawing.out / f"figure4_{size.name}_losses.svg"
    title = f"CIFAR-100, 40 % noise, epoch {size.prune_after}"
    return [left, draw_lines(path, title, series, ("loss", "density"), cuts)]


EXPERIMENT = Experiment(
    name="figure4",
    title="Choosing E and p (CIFAR-100, 40 %)",
    cost="one trunk to epoch 100, about 8 min of an H200",
    cells=cells,
    unit="shares",
    digits=3,
    draw=draw,
)
