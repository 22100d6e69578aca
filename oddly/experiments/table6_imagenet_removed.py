"""Table 6: the percentage of ImageNet that ODD removes, by p.

Paper: "Percentage of samples discared by ODD" (sic), `tab:ablation-imagenet-discard`. ResNet-152,
as in Table 3; E is not stated. Figure 7, left, shows the accuracy of such runs without numbers.
Command: oddly reproduce table6 --next --minutes 600 --data-dir DIR   (DIR/imagenet/{train,val}/)
Cost: not measured; Table 3's three trunks up to E, and nothing more.
Numbers to match: `PAPER` below.
"""

from __future__ import annotations

from collections.abc import Sequence

from oddly.experiments.base import Cell, Experiment, PaperNumber
from oddly.experiments.large_sizes import IMAGENET
from oddly.experiments.looks import at_percentile, follow, look_cell
from oddly.experiments.sizes import Size

PERCENTILES = (1.0, 10.0, 30.0, 50.0, 80.0)
PAPER = {
    0.4: (44.1, 40.2, 36.2, 27.6, 0.6),
    0.2: (23.8, 20.8, 19.2, 17.5, 0.7),
    0.0: (5.5, 2.3, 1.1, 0.7, 0.4),
}


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    noises = [0.4] if size.name == "small" else list(PAPER)
    made = []
    for noise in noises:
        trunks = [size.trunk("imagenet", seed, noise=noise) for seed in range(seeds)]
        jobs = tuple(follow(trunk, size.prune_after) for trunk in trunks)
        for p, printed in zip(PERCENTILES, PAPER[noise], strict=True):
            row, column = f"{100 * noise:g} % noise", f"p = {p:g}"
            read, paper = at_percentile(p, "removed", times=100), PaperNumber(printed)
            made.append(look_cell(row, column, jobs, size.prune_after, read, paper))
    return made


EXPERIMENT = Experiment(
    name="table6",
    title="Removed from ImageNet, by p",
    cost="not measured; shared with table3",
    cells=cells,
    sizes=IMAGENET,
)
