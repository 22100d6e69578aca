"""Table 3: top-1 and top-5 accuracy on ImageNet with uniform noise.

Paper: section "ImageNet", `tab:imagenet-uniform-noise`. ResNet-152, 90 epochs, centre crops of 224,
p = 10. Batch, schedule and E are not stated; large_sizes.py has ours.
Command: oddly reproduce table3 --next --minutes 600 --data-dir DIR   (DIR/imagenet/{train,val}/)
Cost: not measured; we expect days of an H200 per column.
Numbers to match: `PAPER` below.
"""

from __future__ import annotations

from collections.abc import Sequence

from oddly.experiments.base import Cell, Experiment, PaperNumber, method_job
from oddly.experiments.large_sizes import IMAGENET
from oddly.experiments.results import Result
from oddly.experiments.sizes import Size

NOISES = {"0 %": 0.0, "20 %": 0.2, "40 %": 0.4}
PAPER: dict[str, dict[str, tuple[float, float]]] = {
    "ERM": {"0 %": (78.7, 94.3), "20 %": (72.6, 90.2), "40 %": (61.2, 84.4)},
    "ODD": {"0 %": (78.7, 94.0), "20 %": (77.5, 93.5), "40 %": (74.8, 92.1)},
    "Luo": {"0 %": (76.7, 93.3), "20 %": (75.2, 92.3), "40 %": (73.2, 91.0)},
    "MentorNet": {"40 %": (65.1, 85.9)},
}
METHOD_OF = {"Luo": "luo", "MentorNet": "mentornet"}


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    rows = list(PAPER)[:2] if size.name == "small" else list(PAPER)
    noises = ["40 %"] if size.name == "small" else ["40 %", "20 %", "0 %"]
    made = []
    for row in rows:
        for noise in noises:
            jobs = tuple(
                method_job(size, row, "imagenet", seed, METHOD_OF, noise=NOISES[noise])
                for seed in range(seeds)
            )
            printed = PAPER[row].get(noise)
            for place, name in enumerate(("top-1", "top-5")):
                paper = PaperNumber(printed[place]) if printed else None
                made.append(Cell(row, f"{name} {noise}", paper, jobs, (top1, top5)[place]))
    return made


def top1(result: Result) -> float:
    return float(result.summary["test_accuracy"])


def top5(result: Result) -> float:
    return float(result.summary["test_accuracy_top5"])


EXPERIMENT = Experiment(
    name="table3",
    title="Uniform noise on ImageNet",
    cost="not measured; days of an H200 per column",
    cells=cells,
    sizes=IMAGENET,
)
