"""Classes of unlike size, allowed for and not: unlike_sizes.json.

    python -m evidence.unlike_sizes --data-dir DATA --fashion FOLDER --mnist FOLDER     # 150 rows

Four minutes on a core, and more to look at the images once. DATA holds the official CIFAR-10 and
CIFAR-100 and the labels of CIFAR-10N, each FOLDER what `evidence.held_out` reads. Of every class
fewer are drawn than of the one before. Judged twice by the same scores: with `size_shifts` or none.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray

from evidence.again import Cells, Row, Table, main, make, options
from evidence.engine_runs import calling_nothing, judge_twice
from evidence.features import held_out
from evidence.figures import rounded, side_by_side
from evidence.labels import Labels
from evidence.one_way import with_percent
from evidence.recorded_cases import Loads, draw_tail, loads_from, with_data_dir
from evidence.recordings import record
from evidence.small_images import EXAMPLES, SETS
from evidence.valley import NETWORKS, SEEDS
from evidence.valley import load as load_digits
from oddly.core import Verdict
from oddly.data.noise import add_noise
from oddly.engine.embed import head_recipe

RATIOS = (10, 30)
RARE = 0.3  # of the classes, the smallest
KINDS = ("clean", "uniform 20", "weak 20")
HEADS = {  # what tables call them, how many images to draw from, their labels
    "cifar10": ("CIFAR-10", (2_500, 10_000), ("clean", "aggregate", "random1", *KINDS[1:])),
    "cifar100": ("CIFAR-100", (20_000,), KINDS),
    "fashion": ("Fashion-MNIST", (EXAMPLES,), KINDS),
    "mnist": ("MNIST", (EXAMPLES,), KINDS),
}
DIGITS = (("clean", 0), ("uniform", 20), ("instance", 20))


def allowing_for_nothing() -> AbstractContextManager[Any]:
    return mock.patch("oddly.core.sentinels.confusion.SIZES", 0.0)


def draw(true: Labels, classes: int, ratio: int, examples: int, seed: int) -> Labels:
    """Places, of so many examples to begin with; every seed has other rare classes."""
    rng = np.random.RandomState(seed)
    some = rng.permutation(len(true))[:examples]
    return np.sort(some[draw_tail(rng.permutation(classes)[true[some]], classes, ratio)])


def judge_head(data: str, kind: str, ratio: int, examples: int, seed: int, loads: Loads) -> Row:
    images = loads[data]()
    images = images.take(draw(images.true, images.classes, ratio, examples, seed)).scaled()
    given = images.label(kind)
    recording = record(images, given, head_recipe(len(given), images.classes), linear=True)
    with allowing_for_nothing():
        without = recording.judge()
    return describe(recording.judge(), without, recording.wrong.numpy(), images.classes)


def judge_digits(kind: str, rate: int, network: str, ratio: int, seed: int) -> Row:
    data = load_digits("clean", 0, seed)
    stay = draw(data.train.labels.numpy(), 10, ratio, len(data.train), seed)
    data = data.take(torch.from_numpy(stay))
    if rate:
        data = add_noise(data, kind, rate / 100, torch.Generator().manual_seed(seed))
    judged, without = judge_twice(data, allowing_for_nothing(), seed=seed, **NETWORKS[network])
    return describe(judged[0], without, *judged[1:])


def describe(verdict: Verdict, without: Verdict, wrong: NDArray[np.bool_], classes: int) -> Row:
    """Also which share of the right labels goes, of rare classes and of the others."""
    sizes = np.bincount(verdict.labels.numpy(), minlength=classes)
    rare = np.isin(verdict.labels.numpy(), sizes.argsort()[: int(RARE * classes)])
    row = side_by_side(without, verdict, wrong)
    for name, one in (("without", without), ("with", verdict)):
        gone = ~one.keep.numpy()
        row[name]["kept_whole"] = len(one.spared_classes)
        row[name]["lost_rare"] = rounded(gone[rare & ~wrong].mean())
        row[name]["lost_others"] = rounded(gone[~rare & ~wrong].mean())
    return {
        "examples": len(wrong),
        "classes_of": [int(sizes.max()), int(sizes[sizes > 0].min())],
        "wrong": rounded(wrong.mean()),
        "doubted": verdict.tell_doubt() is not None,
        **row,
    }


def cells(loads: Loads) -> Cells:
    for data, (called, sizes, kinds) in HEADS.items():
        for examples, kind, ratio, seed in product(sizes, kinds, RATIOS, SEEDS):
            named = name(f"{called}, drawn from {examples:,}", kind, ratio, seed)
            yield named, partial(judge_head, data, kind, ratio, examples, seed, loads)
    for network, (kind, rate), ratio, seed in product(NETWORKS, DIGITS, RATIOS, SEEDS):
        named = name(f"digits, {network}", f"{kind} {rate}" if rate else kind, ratio, seed)
        yield named, partial(judge_digits, kind, rate, network, ratio, seed)


def name(images: str, kind: str, ratio: int, seed: int) -> Row:
    return {"images": images, "labels": with_percent(kind), "ratio": ratio, "seed": seed}


def run() -> None:
    parser = with_data_dir(options(__doc__))
    for data in SETS:
        parser.add_argument(f"--{data}", type=Path, default=Path(data), metavar="FOLDER")
    args = parser.parse_args()
    small = {data: cache(partial(held_out, data, getattr(args, data), args.out)) for data in SETS}
    with calling_nothing():
        make(Table("unlike_sizes.json", "rows"), cells({**loads_from(args), **small}), args)


if __name__ == "__main__":
    main(run)
