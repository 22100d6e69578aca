"""Labels that are wrong by a rule, looked for and not: one_way.json.

    python -m evidence.one_way --data-dir DATA      # 54 rows; 12 minutes on a core

And some more minutes to look at the images once. DATA holds the official CIFAR-10 and CIFAR-100 and
the labels of CIFAR-10N; digits come with the installation. A training is judged twice, by the same
scores: with `find_one_way`, and with a stand-in that finds nothing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from evidence.again import Cells, Row, Table, main, make, options
from evidence.engine_runs import calling_nothing, judge_twice
from evidence.features import NOISE_SEED, Features
from evidence.figures import best_f1, rounded, side_by_side
from evidence.labels import Labels
from evidence.recorded_cases import Loads, draw_tail, loads_from, with_data_dir
from evidence.recordings import record
from evidence.valley import NETWORKS, SEEDS
from evidence.valley import load as load_digits
from oddly.core import Verdict, judging

SETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
RULES = ("next", "permuted", "reversed")
NOISES = (
    *(f"next {rate}" for rate in (10, 20, 30, 40)),
    *(f"{kind} {rate}" for kind in ("permuted", "reversed", "asymmetric") for rate in (20, 40)),
    *("uniform 20", "weak 20", "weak 40", "clean"),
)
TAILS = (10, 50, 200)


def give_labels(images: Features, kind: str) -> Labels:
    """A share by the next class, by that of another order, or by the one across; or as ever."""
    name, _, percent = kind.partition(" ")
    if name not in RULES:
        return images.label(kind)
    draw = np.random.RandomState(NOISE_SEED)
    hit = draw.random(len(images.true)) < int(percent) / 100
    own = np.arange(images.classes)
    called = {"next": np.roll(own, -1), "permuted": draw.permutation(own), "reversed": own[::-1]}
    return np.where(hit, called[name][images.true], images.true)


def finding_nothing() -> AbstractContextManager[Any]:
    return mock.patch.object(judging, "find_one_way", return_value=())


def judge_digits(rate: int, network: str, seed: int) -> Row:
    data, asked = load_digits("pair", rate, seed), NETWORKS[network]
    (verdict, wrong, _), without = judge_twice(data, finding_nothing(), seed=seed, **asked)
    return describe(verdict, without, wrong)


def judge_head(data: str, kind: str, tail: int | None, loads: Loads) -> Row:
    images = loads[data]()
    given = give_labels(images, kind)
    if tail:
        stay = draw_tail(given, images.classes, tail)
        images, given = images.take(stay), given[stay]
    recording = record(images, given)
    with finding_nothing():
        without = recording.judge()
    return describe(recording.judge(), without, recording.wrong.numpy())


def describe(verdict: Verdict, without: Verdict, wrong: NDArray[np.bool_]) -> Row:
    return {
        "examples": len(wrong),
        "wrong": rounded(wrong.mean()),
        "noise_rate": [rounded(each) for each in verdict.noise_rate or ()],
        "one_way": len(verdict.one_way),
        "doubted": without.tell_doubt() is not None,
        "best_f1": best_f1(without, wrong),
        **side_by_side(without, verdict, wrong),
    }


def with_percent(kind: str) -> str:
    return f"{kind} %" if " " in kind else kind


def cells(loads: Loads) -> Cells:
    for rate in (20, 40):
        for network in NETWORKS:
            for seed in SEEDS:
                images = {"images": f"digits, {network}", "labels": f"next {rate} %", "seed": seed}
                yield images, partial(judge_digits, rate, network, seed)
    for data, name in SETS.items():
        for kind in NOISES + (("aggregate", "random1") if data == "cifar10" else ()):
            labels = {"images": name, "labels": with_percent(kind)}
            yield labels, partial(judge_head, data, kind, None, loads)
        for tail in TAILS:
            for kind in ("clean", "uniform 20"):
                drawn = f"{with_percent(kind)}, long tail {tail} to 1"
                labels = {"images": name, "labels": drawn}
                yield labels, partial(judge_head, data, kind, tail, loads)


def run() -> None:
    args = with_data_dir(options(__doc__)).parse_args()
    with calling_nothing():
        make(Table("one_way.json", "rows"), cells(loads_from(args)), args)


if __name__ == "__main__":
    main(run)
