"""Classes of which many images are called another, looked for and not: called.json.

    python -m evidence.called --data-dir DATA --mnist FOLDER --fashion FOLDER --folders FOLDER

106 rows, 15 minutes on a core; images as in common_mean.py, 10,000 of CIFAR-10 as in one_way.py,
and digits trained from scratch. A training is judged twice, at E, by the same scores: with
`find_called`, and with a stand-in that finds nothing. Means of two seeds, of noise and training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evidence.again import Cells, Row, Table, main, make, options
from evidence.called_labels import DIGITS, label_cifar10, label_digits, label_set
from evidence.common_mean import OTHERS, SEEDS, SMALL
from evidence.engine_runs import calling_nothing, judge_twice
from evidence.figures import best_f1, rounded, side_by_side
from evidence.recorded_cases import Loads, loads_from, with_data_dir
from evidence.small_trial import Folders
from evidence.valley import NETWORKS
from oddly.data.base import LabelledData

KINDS = (
    *(f"half {rate}" for rate in (10, 20, 30, 40)),
    *("one 20", "one 40", "both ways 30", "uniform 20", "clean"),
)
"""How many classes are called what they look like, and how many percent of each."""
PEOPLE = ("aggregate", "random1", "weak 20", "weak 40", "asymmetric 20", "asymmetric 40", "clean")
TRULY = 0.1  # of a class bears the other label: then it is called so
SCRATCH = (
    *(f"{kind} {rate}" for kind in DIGITS for rate in (20, 40)),
    *("uniform 20", "instance 40", "clean"),
)


def make_row(label: Callable[[int], LabelledData], asked: Mapping[str, Any]) -> Row:
    """`label` gives the data, noisy as a seed has it."""
    rows = [judge(label(seed), {**asked, "seed": seed}) for seed in SEEDS]
    return {name: mean([row[name] for row in rows]) for name in rows[0]}


def judge(data: LabelledData, asked: Mapping[str, Any]) -> Row:
    (verdict, wrong, _), without = judge_twice(data, calling_nothing(), **asked)
    given, true = data.train.labels, data.true_labels
    assert true is not None
    right = [int(((given == label) & (true == own)).sum()) for label, own in verdict.called]
    sizes = [int((true == own).sum()) for _, own in verdict.called]
    truly = [called >= TRULY * size for called, size in zip(right, sizes, strict=True)]
    return {
        "wrong": rounded(wrong.mean()),
        "called": len(truly),
        "truly": sum(truly),
        "one_way": len(verdict.one_way),
        "best_f1": best_f1(without, wrong),
        **side_by_side(without, verdict, wrong),
    }


def mean(values: list[Any]) -> Any:
    if values[0] is None:
        return None
    if isinstance(values[0], dict):
        known = [name for name in values[0] if all(name in value for value in values)]
        return {name: mean([value[name] for value in values]) for name in known}
    return rounded(np.mean(values))


def cells(folders: Folders, others: Path, loads: Loads, out: Path) -> Cells:
    for name in (*SMALL, *OTHERS):
        for kind in KINDS:
            label = partial(label_set, name, kind, folders, others, out / name)
            yield {"images": name, "labels": kind}, partial(make_row, label, {})
    for kind in PEOPLE:
        row = {"images": "CIFAR-10, 10,000", "labels": kind}
        yield row, partial(make_row, partial(label_cifar10, kind, loads), {})
    for network, asked in NETWORKS.items():
        for kind in SCRATCH:
            row = {"images": f"digits, {network}", "labels": kind}
            yield row, partial(make_row, partial(label_digits, kind), asked)


def run() -> None:
    parser = with_data_dir(options(__doc__))
    for each in ("mnist", "fashion", "folders"):
        parser.add_argument(f"--{each}", type=Path, required=True)
    args = parser.parse_args()
    folders = Folders(args.data_dir, args.mnist, args.fashion)
    work = cells(folders, args.folders, loads_from(args), args.out / "common_mean")
    make(Table("called.json", "rows"), work, args)


if __name__ == "__main__":
    main(run)
