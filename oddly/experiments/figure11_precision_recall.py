"""Figure 11: precision and recall of what is removed.

Paper: "Precision and recall for classifying noise", `fig:app:cifar-prec-recall`. CIFAR-10 and
CIFAR-100, uniform noise of 1, 5, 10, 20, 30 and 40 %, "default hyperparameters" (E = 75, p = 10).
Command: oddly reproduce figure11 --next --minutes 25 --data-dir DIR --out figures
Cost: twelve trunks up to epoch 75, about 6 minutes of an H200 each; shared with Figure 10 and
Table 1.
Numbers to match: recall "around 0.84 to 0.88" and precision "from 0.88 to 0.92", both from the
text. At 1 % noise that allows a false alarm for at most about 1 in 800 right labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oddly.experiments.base import Cell, Drawing, Experiment, fill
from oddly.experiments.drawing import draw_lines
from oddly.experiments.figure10_noise_amount import amounts, make_job
from oddly.experiments.looks import at_percentile, look_cell
from oddly.experiments.sizes import Size

DATA = {"CIFAR-100": "cifar100", "CIFAR-10": "cifar10"}
FIGURES = ("precision", "recall")
PERCENTILE = 10.0


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    data = {"CIFAR-10": "cifar10"} if size.name == "small" else DATA
    made = []
    for noise in amounts(size):
        for name, source in data.items():
            jobs = tuple(make_job(size, source, noise, seed) for seed in range(seeds))
            for figure in FIGURES:
                row, column = f"{100 * noise:g} % noise", f"{name} {figure}"
                read = at_percentile(PERCENTILE, figure)
                made.append(look_cell(row, column, jobs, size.prune_after, read))
    return made


def draw(drawing: Drawing) -> Sequence[Path]:
    series: dict[str, list[tuple[float, float]]] = {}
    for cell in fill(cells(drawing.size, drawing.seeds), drawing.store):
        if cell.ours is not None:
            noise = float(cell.row.split()[0])
            series.setdefault(cell.column, []).append((noise, cell.ours))
    if not series:
        return []
    path = drawing.out / f"figure11_{drawing.size.name}.svg"
    title = f"Precision and recall, E = {drawing.size.prune_after}, p = {PERCENTILE:g}"
    return [draw_lines(path, title, series, ("noise, %", "share"))]


EXPERIMENT = Experiment(
    name="figure11",
    title="Precision and recall by noise (p = 10)",
    cost="twelve trunks to epoch 75, about 6 min of an H200 each",
    cells=cells,
    unit="shares",
    digits=3,
    draw=draw,
    about="Paper (text only): recall .84 to .88, precision .88 to .92.",
)
