"""Figure 10: how much is removed against how much is wrong.

Paper: "Sensitivity to the amount of noise", `fig:app:noise-vs-train-error`. CIFAR-10, uniform noise
of 1, 5, 10, 20, 30 and 40 %, p = 5, E = 50 or 75.
Command: oddly reproduce figure10 --next --minutes 25 --data-dir DIR --out figures
Cost: six trunks up to epoch 75, about 6 minutes of an H200 each; shared with Figure 11 and Table 1.
Numbers to match: none are printed. The text says that "the training error is almost exactly the
amount of noise", so the share removed should equal the share wrong. A uniform label may hit the
true class, so 40 % noise is 36 % wrong; the column "wrong" counts what really is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oddly.experiments.base import Cell, Drawing, Experiment, Job, fill
from oddly.experiments.drawing import draw_lines
from oddly.experiments.looks import Snapshot, at_percentile, follow, look_cell
from oddly.experiments.sizes import Size

NOISES = (0.4, 0.2, 0.1, 0.05, 0.3, 0.01)
EPOCHS = (50, 75)
PERCENTILE = 5.0


def amounts(size: Size) -> tuple[float, ...]:
    return NOISES[:1] if size.name == "small" else NOISES


def make_job(size: Size, data: str, noise: float, seed: int) -> Job:
    trunk = size.trunk(data, seed, noise=noise)
    return follow(trunk, *(size.at(epoch) for epoch in EPOCHS))


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    made, removed = [], at_percentile(PERCENTILE, "removed", times=100)
    for noise in amounts(size):
        row = f"{100 * noise:g} % noise"
        jobs = tuple(make_job(size, "cifar10", noise, seed) for seed in range(seeds))
        for epoch in EPOCHS:
            at = size.at(epoch)
            made.append(look_cell(row, f"removed, E = {at}", jobs, at, removed))
        made.append(look_cell(row, "wrong", jobs, size.at(EPOCHS[0]), _percent_wrong))
    return made


def _percent_wrong(snapshot: Snapshot) -> float:
    counts = snapshot["histogram"]
    wrong, right = sum(counts["noise"]), sum(counts["normal"])
    return 100 * float(wrong) / float(wrong + right)


def draw(drawing: Drawing) -> Sequence[Path]:
    filled = fill(cells(drawing.size, drawing.seeds), drawing.store)
    wrong = {cell.row: cell.ours for cell in filled if cell.column == "wrong"}
    series: dict[str, list[tuple[float, float]]] = {}
    for cell in filled:
        x = wrong[cell.row]
        if x is not None and cell.ours is not None and cell.column != "wrong":
            series.setdefault(cell.column, []).append((x, cell.ours))
    if not series:
        return []
    most = max(x for points in series.values() for x, _ in points)
    series["equal"] = [(0.0, 0.0), (most, most)]
    path = drawing.out / f"figure10_{drawing.size.name}.svg"
    return [draw_lines(path, "Removed against wrong, CIFAR-10", series, ("wrong, %", "removed, %"))]


EXPERIMENT = Experiment(
    name="figure10",
    title="Removed against actual noise (CIFAR-10, p = 5)",
    cost="six trunks to epoch 75, about 6 min of an H200 each",
    cells=cells,
    draw=draw,
    about="Paper (text only): removed is almost exactly the amount of noise.",
)
