"""Figure 2 (also 5, 6 and 12 to 14): images of clean CIFAR-100 that ODD calls mislabelled.

Paper: section "Mislabeled examples in CIFAR-100" and the appendix; `fig:cifar-demo`, `fig:leopard`,
`fig:noisy-images-cifar100-t`. What all three seeds remove, with E = 75 and p = 10.
Command: oddly reproduce figure2 --next --minutes 25 --data-dir DIR --out figures
Cost: three trunks of clean CIFAR-100 up to epoch 75, about 6 minutes of an H200 each.
Numbers to match: "21 of 50 leopard examples in the training set are perceived as hard", and leopard
is one of the most common labels. CIFAR-100 has 500 leopards for training, so what the 50 counts is
not clear. The paper sees tigers and black panthers among them; `--out` draws the images, so that
you can look.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from oddly.data.base import LabelledData
from oddly.experiments.base import Cell, Drawing, Experiment, Job
from oddly.experiments.looks import at_percentile, follow, look_cell
from oddly.experiments.results import Result
from oddly.experiments.sizes import Size

SEEDS = 3
LEOPARD = 42  # among the classes in alphabetical order
SHEET, COLUMNS, ZOOM, CAPTION = 48, 8, 3, 14


def make_jobs(size: Size) -> tuple[Job, ...]:
    """Always three: the figure is about what all of them agree on."""
    return tuple(follow(size.trunk("cifar100", seed), size.prune_after) for seed in range(SEEDS))


def cells(size: Size, seeds: int) -> Sequence[Cell]:
    jobs = make_jobs(size)
    removed = at_percentile(10.0, "removed", times=100)
    return [
        look_cell("removed, %", "one seed", jobs, size.prune_after, removed),
        Cell("removed by all three", "examples", None, jobs, joint=lambda r: len(agreed(r, size))),
        Cell("leopards among them", "examples", None, jobs, joint=lambda r: leopards(r, size)),
        Cell("rank of leopard", "examples", None, jobs, joint=lambda r: leopard_rank(r, size)),
    ]


def verdict_of(result: Result, size: Size) -> Mapping[str, Any]:
    """What p = 10 would remove at E."""
    verdict: Mapping[str, Any] = result.snapshots[str(size.prune_after)]["by_percentile"]["10"]
    return verdict


def agreed(results: Sequence[Result], size: Size) -> dict[int, int]:
    """Training examples that every seed would remove, with their given labels."""
    each = [verdict_of(result, size) for result in results]
    removed = [dict(zip(v.get("indices", []), v.get("labels", []), strict=True)) for v in each]
    common = set.intersection(*(set(one) for one in removed))
    return {i: removed[0][i] for i in sorted(common)}


def leopards(results: Sequence[Result], size: Size) -> int:
    return list(agreed(results, size).values()).count(LEOPARD)


def leopard_rank(results: Sequence[Result], size: Size) -> int:
    """1: no label is more frequent among those removed by all."""
    counts = Counter(agreed(results, size).values())
    return 1 + sum(number > counts[LEOPARD] for number in counts.values())


def draw(drawing: Drawing) -> Sequence[Path]:
    """Sheets of the removed: the commonest label, leopards, random ones; and of the kept."""
    from oddly.data import DataOptions, load_data

    size = drawing.size
    results = [drawing.store.find(job.config) for job in make_jobs(size)]
    known = [each for each in results if each and str(size.prune_after) in each.snapshots]
    if len(known) < SEEDS:
        return []
    data = size.load("cifar100", drawing.data_dir) or load_data(
        "cifar100", DataOptions(data_dir=drawing.data_dir)
    )
    removed = agreed(known, size)
    kept = sorted(set(range(len(data.train))) - set(removed))
    cats = [i for i, label in removed.items() if label == LEOPARD]
    out = drawing.out
    written = [
        draw_sheet(out / f"figure2_{size.name}_leopards.png", data, cats[:SHEET]),
        draw_sheet(out / f"figure2_{size.name}_removed.png", data, pick(list(removed))),
        draw_sheet(out / f"figure2_{size.name}_kept.png", data, pick(kept)),
    ]
    return [*written, write_counts(out / f"figure2_{size.name}_labels.txt", data, list(removed))]


def pick(indices: Sequence[int]) -> list[int]:
    """A random few, the same each time."""
    order = torch.randperm(len(indices), generator=torch.Generator().manual_seed(0))
    return [indices[i] for i in order[:SHEET].tolist()]


def write_counts(path: Path, data: LabelledData, removed: Sequence[int]) -> Path:
    """How many examples of each given label, the most frequent first."""
    counts = Counter(int(data.train.labels[i]) for i in removed)
    lines = [f"{number:5d}  {data.class_names[k]}" for k, number in counts.most_common()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def draw_sheet(path: Path, data: LabelledData, indices: Sequence[int]) -> Path:
    """Images in rows, their given labels below."""
    images = data.train.images
    assert isinstance(images, Tensor)
    side = ZOOM * 32
    rows = max(1, math.ceil(len(indices) / COLUMNS))
    sheet = Image.new("RGB", (COLUMNS * (side + 4), rows * (side + CAPTION + 4)), "white")
    pen = ImageDraw.Draw(sheet)
    for place, i in enumerate(indices):
        x, y = place % COLUMNS * (side + 4), place // COLUMNS * (side + CAPTION + 4)
        picture = Image.fromarray(images[i].permute(1, 2, 0).numpy())
        sheet.paste(picture.resize((side, side), Image.Resampling.NEAREST), (x, y))
        name = data.class_names[int(data.train.labels[i])].replace("_", " ")
        pen.text((x + 1, y + side), name[:16], fill="black")
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path)
    return path


EXPERIMENT = Experiment(
    name="figure2",
    title="Mislabelled images in clean CIFAR-100",
    cost="three trunks to epoch 75, about 6 min of an H200 each",
    cells=cells,
    unit="see rows",
    draw=draw,
    about='Paper (text only): "21 of 50 leopard examples are perceived as hard".',
)
