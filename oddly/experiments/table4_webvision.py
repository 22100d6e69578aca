"""Table 4: trained on WebVision, tested on its validation set and on ImageNet's.

Paper: section "WebVision", `tab:webvision`. Inception-ResNet-v2, 299 pixels, 50 epochs, p = 30.
Batch, learning rate, schedule and E are not stated; large_sizes.py has ours. The row "LASS" is a
dropout baseline (Arpit et al. 2017). Slides by the same authors give ODD 72.6 and 64.8.
Command: oddly reproduce table4 --next --minutes 600 --data-dir DIR  (DIR/{webvision,imagenet}/)
Cost: not measured; we expect days of an H200 per row.
Numbers to match: `PAPER` below, and 9.3 % of the examples removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from oddly.experiments.base import Cell, Experiment, Job, PaperNumber, method_job
from oddly.experiments.large_sizes import WEBVISION
from oddly.experiments.results import Result
from oddly.experiments.sizes import Size
from oddly.experiments.table3_imagenet import top1, top5

PAPER = {
    "ODD": (74.6, 90.6, 66.7, 86.3),
    "ERM": (69.7, 87.0, 62.9, 83.6),
    "Luo": (73.4, 89.5, 65.9, 85.7),
    "CurriculumNet": (73.1, 89.2, 64.7, 84.9),
    "MentorNet": (70.8, 88.0, 62.5, 83.0),
    "CleanNet": (68.5, 86.5, 60.2, 81.1),
    "LASS": (66.6, 85.6, 59.0, 80.8),
}
METHOD_OF = {
    "Luo": "luo",
    "CurriculumNet": "curriculum",
    "MentorNet": "mentornet",
    "CleanNet": "cleannet",
    "LASS": "dropout",
}
PERCENTILE = 30.0


def elsewhere(figure: str) -> Callable[[Result], float]:
    return lambda result: float(result.also["imagenet"][figure])


READERS: dict[str, Callable[[Result], float | None]] = {
    "WebVision top-1": top1,
    "WebVision top-5": top5,
    "ImageNet top-1": elsewhere("top1"),
    "ImageNet top-5": elsewhere("top5"),
}


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    rows = ["ERM", "ODD"] if size.name == "small" else list(PAPER)
    made = []
    for row in rows:
        jobs = tuple(make_job(size, row, seed) for seed in range(seeds))
        for (column, read), printed in zip(READERS.items(), PAPER[row], strict=True):
            made.append(Cell(row, column, PaperNumber(printed), jobs, read))
        if row == "ODD":
            made.append(Cell(row, "removed", PaperNumber(9.3), jobs, removed))
    return made


def make_job(size: Size, row: str, seed: int, percentile: float = PERCENTILE) -> Job:
    job = method_job(size, row, "webvision", seed, METHOD_OF, percentile=percentile)
    return replace(job, also_test="imagenet")


def removed(result: Result) -> float:
    return 100 * float(result.summary["removed_fraction"])


EXPERIMENT = Experiment(
    name="table4",
    title="Trained on WebVision",
    cost="not measured; days of an H200 per row",
    cells=cells,
    sizes=WEBVISION,
)
