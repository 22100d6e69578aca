"""Figure 3: losses of right labels, of random labels, and the simulated ones, as histograms.

Paper: section "Separating mislabeled examples via SGD", `fig:histogram`. CIFAR-100 and ImageNet,
20 and 40 % uniform noise, at an epoch with a large learning rate (50 of 200 in the slides).
Command: oddly reproduce figure3 --next --minutes 25 --data-dir DIR --out figures
Cost: three trunks of CIFAR-100 up to epoch 75, about 6 minutes of an H200 each; ImageNet: a third
of Table 3.
Numbers to match: none are printed. The claims are "q_n matches the loss distribution of noisy
examples" and that neither depends on the type or amount of noise. Here each has a number, the
Kolmogorov-Smirnov distance (0 = the same, 1 = apart); asymmetric noise of 40 % is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oddly.experiments.base import Cell, Drawing, Experiment, Job
from oddly.experiments.drawing import draw_lines, histogram_points
from oddly.experiments.looks import follow, look_cell, measured
from oddly.experiments.results import Result
from oddly.experiments.sizes import Size
from oddly.experiments.snapshot import EDGES, histogram_distance

EPOCHS = (10, 30, 50, 75)
NOISES = {
    "CIFAR-100 20 %": ("cifar100", 0.2, "uniform"),
    "CIFAR-100 40 %": ("cifar100", 0.4, "uniform"),
    "CIFAR-100 asymmetric 40 %": ("cifar100", 0.4, "asymmetric"),
}
APART = ("noise", "simulated")


def columns(size: Size) -> dict[str, tuple[str, float, str]]:
    if size.name == "small":
        return {"CIFAR-100 40 %": NOISES["CIFAR-100 40 %"]}
    return NOISES


def make_jobs(size: Size, column: str, seeds: int) -> tuple[Job, ...]:
    data, noise, kind = NOISES[column]
    epochs = [size.at(epoch) for epoch in EPOCHS]
    return tuple(
        follow(size.trunk(data, seed, noise=noise, noise_kind=kind), *epochs)
        for seed in range(seeds)
    )


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    made = []
    for column in reversed(columns(size)):  # 40 % first, which Table 1 needs as well
        jobs = make_jobs(size, column, seeds)
        for epoch in EPOCHS:
            for row, key in (
                ("KS(noise, simulated)", "ks_noise_simulated"),
                ("KS(noise, normal)", "ks_noise_normal"),
            ):
                at = size.at(epoch)
                made.append(look_cell(f"{row}, epoch {at}", column, jobs, at, measured(key)))
    return made + _compare_amounts(size, seeds)


def _compare_amounts(size: Size, seeds: int) -> list[Cell]:
    """How far the same curve moves when the amount of noise changes: seed 0 of two trunks."""
    if len(columns(size)) < 2:
        return []
    first, second = ("CIFAR-100 20 %", "CIFAR-100 40 %")
    jobs = (make_jobs(size, first, 1)[0], make_jobs(size, second, 1)[0])
    made = []
    for name in APART:
        for epoch in EPOCHS:
            at = str(size.at(epoch))

            def distance(results: Sequence[Result], name: str = name, at: str = at) -> float:
                one, other = (r.snapshots[at]["histogram"][name] for r in results)
                return histogram_distance(one, other)

            row = f"KS({name} at 20 %, at 40 %), epoch {at}"
            made.append(Cell(row, "CIFAR-100 20 % against 40 %", None, jobs, joint=distance))
    return made


def draw(drawing: Drawing) -> Sequence[Path]:
    """One histogram per noise and epoch, seed 0."""
    written = []
    for column in columns(drawing.size):
        result = drawing.store.find(make_jobs(drawing.size, column, 1)[0].config)
        for epoch, snapshot in (result.snapshots if result else {}).items():
            series = {
                name: histogram_points(EDGES.tolist(), counts)
                for name, counts in snapshot["histogram"].items()
                if sum(counts)
            }
            name = column.replace(" ", "_").replace("_%", "").lower()
            path = drawing.out / f"figure3_{drawing.size.name}_{name}_epoch_{epoch}.svg"
            title = f"{column} noise, epoch {epoch}"
            written.append(draw_lines(path, title, series, ("loss", "density")))
    return written


EXPERIMENT = Experiment(
    name="figure3",
    title="Losses of right, random and simulated labels",
    cost="three trunks to epoch 75, about 6 min of an H200 each",
    cells=cells,
    unit="KS distance",
    digits=3,
    draw=draw,
)
