"""Figure 7 (also 8 and 9): the accuracy by E and by p.

Paper: "Ablation Studies", `fig:ablations`, `fig:app:ablation-imagenet-p`,
`fig:app:epoch-vs-val-error`. Right: ODD on CIFAR-10 with 20 and 40 % noise for
E = 25, 50, 75, 100, 150 and 200 (= ERM). Left: p on ImageNet, with the runs of Table 6. The rows
that vary p on CIFAR-10 are ours.
Command: oddly reproduce figure7 --next --minutes 25 --data-dir DIR --out figures
Cost: not measured; two trunks with nine forks each, by Table 1's speed about 80 minutes of an H200
per column and seed.
Numbers to match: none are printed. The text says that a small E separates right from wrong labels
and a large one does not, and that p = 10 is the best trade-off.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oddly.experiments.base import Cell, Drawing, Experiment, Job, fill
from oddly.experiments.drawing import draw_lines
from oddly.experiments.sizes import Size

EPOCHS = (75, 50, 100, 25, 150, 200)
PERCENTILES = (1.0, 30.0, 50.0, 80.0)  # 10 is the row E = 75
NOISES = {"CIFAR-10 40 %": 0.4, "CIFAR-10 20 %": 0.2}


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    noises = dict(list(NOISES.items())[:1]) if size.name == "small" else NOISES
    epochs = EPOCHS if size.name != "small" else (75, 200)
    percentiles = PERCENTILES if size.name != "small" else ()
    made = []
    for column, noise in noises.items():
        for epoch in epochs:
            at = size.at(epoch)
            jobs = tuple(make_job(size, noise, at, 10.0, seed) for seed in range(seeds))
            made.append(Cell(f"E = {at}, p = 10", column, None, jobs))
        for p in percentiles:
            at = size.prune_after
            jobs = tuple(make_job(size, noise, at, p, seed) for seed in range(seeds))
            made.append(Cell(f"E = {at}, p = {p:g}", column, None, jobs))
    return made


def make_job(size: Size, noise: float, epoch: int, percentile: float, seed: int) -> Job:
    trunk = size.trunk("cifar10", seed, noise=noise)
    if epoch == size.epochs:
        return Job(trunk)
    rule = {"prune_after": epoch, "percentile": percentile}
    return Job(size.paper("cifar10", seed, noise=noise, **rule), trunk)


def draw(drawing: Drawing) -> Sequence[Path]:
    """Validation error by E."""
    filled = fill(cells(drawing.size, drawing.seeds), drawing.store)
    series: dict[str, list[tuple[float, float]]] = {}
    for cell in filled:
        if cell.ours is not None and cell.row.endswith("p = 10"):
            epoch = float(cell.row.split()[2].rstrip(","))
            series.setdefault(cell.column, []).append((epoch, 100 - cell.ours))
    if not series:
        return []
    path = drawing.out / f"figure7_{drawing.size.name}_epochs.svg"
    return [draw_lines(path, "ODD's validation error by E", series, ("E", "error, %"))]


EXPERIMENT = Experiment(
    name="figure7",
    title="Ablating E and p",
    cost="about 80 min of an H200 per column and seed, trunks shared with table1",
    cells=cells,
    draw=draw,
    about="Paper (text only): works for small E, not once the learning rate is small.",
)
