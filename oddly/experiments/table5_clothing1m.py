"""Table 5: Clothing1M with noisy labels, clean labels, and both.

Paper: section "Clothing1M", `tab:clothing1m`. ResNet-50 pretrained on ImageNet, learning rate
0.001, 10 epochs, E = 1, p = 1. For "noisy + clean" the network is then fine-tuned on the clean
labels. Batch, weight decay and schedule are not stated; large_sizes.py has ours.
Command: oddly reproduce table5 --next --minutes 600 --data-dir DIR   (DIR/clothing1m/)
Cost: not measured; we expect hours of an H200 per row. timm downloads the pretrained weights, or
you give them: --with weights=FILE.
Numbers to match: `PAPER` below.
"""

from __future__ import annotations

from collections.abc import Sequence

from oddly.experiments.base import FROM_RUN, Cell, Experiment, Job, PaperNumber, method_job
from oddly.experiments.large_sizes import CLOTHING1M
from oddly.experiments.results import run_name
from oddly.experiments.sizes import Size

PAPER = {
    ("ODD", "noisy"): 73.5,
    ("ERM", "noisy"): 68.9,
    ("ERM", "clean"): 75.2,
    ("ODD", "noisy + clean"): 80.3,
    ("GCE", "noisy"): 69.1,
    ("Loss Correction", "noisy"): 69.2,
    ("LCCN", "noisy"): 71.6,
    ("Joint Opt.", "noisy"): 72.2,
    ("DMI", "noisy"): 72.5,
    ("Loss Correction", "noisy + clean"): 80.4,
}
METHOD_OF = {
    "GCE": "gce",
    "Loss Correction": "loss_correction",
    "LCCN": "lccn",
    "Joint Opt.": "joint_opt",
    "DMI": "dmi",
}
PERCENTILE = 1.0
NOISY, CLEAN = "clothing1m:noisy", "clothing1m:clean"


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    wanted = list(PAPER)[:4] if size.name == "small" else list(PAPER)
    made = []
    for row, setting in wanted:
        jobs = tuple(make_job(size, row, setting, seed) for seed in range(seeds))
        made.append(Cell(row, setting, PaperNumber(PAPER[row, setting]), jobs))
    return made


def make_job(size: Size, row: str, setting: str, seed: int) -> Job:
    if setting == "clean":
        return Job(size.config(CLEAN, seed, method="erm"))
    percentile = PERCENTILE if size.name == "full" else 10.0
    first = method_job(size, row, NOISY, seed, METHOD_OF, percentile=percentile)
    if setting == "noisy":
        return first
    weights = FROM_RUN + run_name(first.config)
    return Job(size.config(CLEAN, seed, method="erm", weights=weights), after=first)


EXPERIMENT = Experiment(
    name="table5",
    title="Clothing1M: noisy, clean, both",
    cost="not measured; hours of an H200 per row",
    cells=cells,
    sizes=CLOTHING1M,
)
