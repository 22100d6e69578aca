"""Table 7: accuracy on WebVision and ImageNet, by p.

Paper: "Ablation studies on WebVision", `tab:wv`. Settings as in Table 4.
Command: oddly reproduce table7 --next --minutes 600 --data-dir DIR  (DIR/{webvision,imagenet}/)
Cost: not measured; Table 4's trunk and five forks, of which Table 4 has one.
Numbers to match: `PAPER` below. The row p = 30 is ODD's in Table 4, which rounds it to one digit.
"""

from __future__ import annotations

from collections.abc import Sequence

from oddly.experiments.base import Cell, Experiment, PaperNumber
from oddly.experiments.large_sizes import WEBVISION
from oddly.experiments.sizes import Size
from oddly.experiments.table4_webvision import READERS, make_job

PAPER = {
    30.0: (74.62, 90.63, 66.73, 86.32),
    10.0: (74.31, 90.55, 66.09, 85.86),
    1.0: (74.01, 89.93, 65.77, 85.40),
    50.0: (74.43, 90.78, 66.58, 86.21),
    80.0: (74.33, 90.30, 66.23, 86.24),
}


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    percentiles = [30.0] if size.name == "small" else list(PAPER)
    made = []
    for p in percentiles:
        jobs = tuple(make_job(size, "ODD", seed, p) for seed in range(seeds))
        for (column, read), printed in zip(READERS.items(), PAPER[p], strict=True):
            made.append(Cell(f"p = {p:g}", column, PaperNumber(printed), jobs, read))
    return made


EXPERIMENT = Experiment(
    name="table7",
    title="Trained on WebVision, by p",
    cost="not measured; shared with table4",
    cells=cells,
    sizes=WEBVISION,
)
