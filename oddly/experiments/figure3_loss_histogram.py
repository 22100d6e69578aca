"""Figure 3: histograms of the losses of right, random and simulated labels.

Paper: section "Separating mislabeled examples via SGD", `fig:histogram`. CIFAR-100 and ImageNet
(see `figure3_imagenet`), 20 and 40 % uniform noise, at an epoch with a large learning rate (50 of
200 in the authors' slides).
Command: oddly reproduce figure3 --next --minutes 25 --data-dir DIR --out figures
Cost: three trunks of CIFAR-100 up to epoch 75, about 6 minutes of an H200 each.
Numbers to match: none are printed. The claims are that q_n "matches the loss distribution of noisy
examples" and depends on neither type nor amount of noise, and that the losses of noisy examples do
not depend on its amount. We measure each claim by the Kolmogorov-Smirnov distance (0: the same, 1:
no overlap), and add asymmetric noise of 40 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from oddly.experiments.base import Cell, Drawing, Experiment, Job
from oddly.experiments.drawing import draw_lines, histogram_points
from oddly.experiments.looks import follow, look_cell, measured
from oddly.experiments.results import Result
from oddly.experiments.sizes import Size
from oddly.experiments.snapshot import EDGES, histogram_distance

EPOCHS = (10, 30, 50, 75)
Noises = Mapping[str, tuple[str, float, str]]
"""By column: data, noise and its kind; the one that `--small` has comes last."""
NOISES: Noises = {
    "CIFAR-100 asymmetric 40 %": ("cifar100", 0.4, "asymmetric"),
    "CIFAR-100 20 %": ("cifar100", 0.2, "uniform"),
    "CIFAR-100 40 %": ("cifar100", 0.4, "uniform"),
}
AMOUNTS = ("CIFAR-100 20 %", "CIFAR-100 40 %")
KINDS = ("CIFAR-100 40 %", "CIFAR-100 asymmetric 40 %")


def columns(noises: Noises, size: Size) -> list[str]:
    """40 % first, which Tables 1 and 3 need as well."""
    return list(noises)[::-1][: 1 if size.name == "small" else None]


def epochs(size: Size) -> list[int]:
    """Each once: a training of a few epochs has no more."""
    return list(dict.fromkeys(size.at(epoch) for epoch in EPOCHS))


def make_jobs(size: Size, noise: tuple[str, float, str], seeds: int) -> tuple[Job, ...]:
    data, amount, kind = noise
    trunks = [size.trunk(data, s, noise=amount, noise_kind=kind) for s in range(seeds)]
    return tuple(follow(trunk, *epochs(size)) for trunk in trunks)


def distances(noises: Noises, size: Size, seeds: int) -> list[Cell]:
    """How far the losses of wrong labels lie from simulated and from right ones' losses."""
    made = []
    for column in columns(noises, size):
        jobs = make_jobs(size, noises[column], seeds)
        for at in epochs(size):
            for row, key in (
                ("KS(noise, simulated)", "ks_noise_simulated"),
                ("KS(noise, normal)", "ks_noise_normal"),
            ):
                made.append(look_cell(f"{row}, epoch {at}", column, jobs, at, measured(key)))
    return made


def compare(
    noises: Noises, pair: tuple[str, str], words: tuple[str, str, str], size: Size
) -> list[Cell]:
    """How far the same curve moves from one column to the other: seed 0 of two trunks.

    `words`: the column, and what each of the two is called there.
    """
    if size.name == "small":
        return []
    first, second = (make_jobs(size, noises[column], 1)[0] for column in pair)
    column, one, other = words
    made = []
    for name in ("noise", "simulated"):
        for at in epochs(size):
            read = partial(_distance, name, str(at))
            row = f"KS({name} {one}, {other}), epoch {at}"
            made.append(Cell(row, column, None, (first, second), joint=read))
    return made


def _distance(name: str, at: str, results: Sequence[Result]) -> float:
    one, other = (result.snapshots[at]["histogram"][name] for result in results)
    return histogram_distance(one, other)


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    amounts = ("CIFAR-100 20 % against 40 %", "at 20 %", "at 40 %")
    kinds = ("CIFAR-100 uniform against asymmetric 40 %", "uniform", "asymmetric")
    return [
        *distances(NOISES, size, seeds),
        *compare(NOISES, AMOUNTS, amounts, size),
        *compare(NOISES, KINDS, kinds, size),
    ]


def draw_noises(noises: Noises, drawing: Drawing) -> Sequence[Path]:
    """One histogram per noise and epoch, seed 0."""
    written = []
    for column in columns(noises, drawing.size):
        result = drawing.store.find(make_jobs(drawing.size, noises[column], 1)[0].config)
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


def draw(drawing: Drawing) -> Sequence[Path]:
    return draw_noises(NOISES, drawing)


EXPERIMENT = Experiment(
    name="figure3",
    title="Losses of right, random and simulated labels",
    cost="three trunks to epoch 75, about 6 min of an H200 each",
    cells=cells,
    unit="KS distance",
    digits=3,
    draw=draw,
    about="ImageNet: oddly reproduce figure3_imagenet.",
)
