"""Figure 3 on ImageNet: losses of right, random and simulated labels.

Paper: section "Separating mislabeled examples via SGD", `fig:histogram`. Settings as in Table 3,
at the epochs that correspond to CIFAR's (see `figure3`).
Command: oddly reproduce figure3_imagenet --next --minutes 600 --data-dir DIR --out figures
Cost: not measured; two of Table 3's trunks up to E, and nothing more.
Numbers to match: none are printed. The claims are those of `figure3`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oddly.experiments.base import Cell, Drawing, Experiment
from oddly.experiments.figure3_loss_histogram import Noises, compare, distances, draw_noises
from oddly.experiments.large_sizes import IMAGENET
from oddly.experiments.sizes import Size

NOISES: Noises = {
    "ImageNet 20 %": ("imagenet", 0.2, "uniform"),
    "ImageNet 40 %": ("imagenet", 0.4, "uniform"),
}


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    amounts = ("ImageNet 20 % against 40 %", "at 20 %", "at 40 %")
    pair = ("ImageNet 20 %", "ImageNet 40 %")
    return [*distances(NOISES, size, seeds), *compare(NOISES, pair, amounts, size)]


def draw(drawing: Drawing) -> Sequence[Path]:
    return draw_noises(NOISES, drawing)


EXPERIMENT = Experiment(
    name="figure3_imagenet",
    title="Losses of right, random and simulated labels on ImageNet",
    cost="not measured; shared with table3",
    cells=cells,
    sizes=IMAGENET,
    unit="KS distance",
    digits=3,
    draw=draw,
)
