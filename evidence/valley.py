"""The cut with the valley below it and without: valley_digits.json.

    python -m evidence.valley      # 48 trainings; a quarter of an hour on a core

On the digits that come with the installation. A training is judged twice, by the same scores:
with `lower_into_valley`, and with a stand-in that leaves the threshold where it is. Labels that are
wrong by a rule are not looked for either time: `evidence.one_way` does that.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from evidence.again import Cells, Row, Table, main, make, options
from evidence.engine_runs import calling_nothing, judge_twice
from evidence.figures import best_f1, rounded, side_by_side
from evidence.small_trainings import RESNET, SCRATCH, WRN
from oddly.core import judging
from oddly.core.sentinels import cut
from oddly.data import DataOptions, load_data
from oddly.data.base import LabelledData
from oddly.data.noise import add_noise

NETWORKS: dict[str, dict[str, Any]] = {WRN: {}, RESNET: {**SCRATCH, "batch_size": 64}}
"""The options of each; the first is the data's own recipe."""
NOISES = (
    *(("instance", rate) for rate in (20, 30, 40)),
    *(("uniform", rate) for rate in (20, 40)),
    *(("pair", rate) for rate in (20, 40)),
    ("clean", 0),
)
SEEDS = (0, 1, 2)


def load(kind: str, rate: int, seed: int) -> LabelledData:
    """Digits, noisy as `oddly train --seed` makes them."""
    data = load_data("digits", DataOptions())
    if not rate:
        return data
    return add_noise(data, kind, rate / 100, torch.Generator().manual_seed(seed))


def stay(ordered: Tensor, threshold: float, height: float) -> float:
    """In the place of `lower_into_valley`."""
    return threshold


def make_row(kind: str, rate: int, network: str, seed: int) -> Row:
    no_valley = mock.patch.object(cut, "lower_into_valley", stay)
    no_rule = mock.patch.object(judging, "find_one_way", return_value=())
    with no_rule, calling_nothing():
        data, asked = load(kind, rate, seed), NETWORKS[network]
        judged, without = judge_twice(data, no_valley, seed=seed, **asked)
    verdict, wrong, _ = judged
    return {
        "wrong": rounded(wrong.mean()),
        "epoch": verdict.epoch,
        "percentile": verdict.percentile,
        "contrast": round(verdict.contrast or 0.0, 2),
        "needed": round(verdict.contrast_needed or 0.0, 2),
        "doubted": verdict.tell_doubt() is not None,
        "best_f1": best_f1(verdict, wrong),
        **side_by_side(without, verdict, wrong),
    }


def cells() -> Cells:
    for kind, rate in NOISES:
        for network in NETWORKS:
            for seed in SEEDS:
                labels = f"{kind} {rate} %" if rate else kind
                name = {"labels": labels, "network": network, "seed": seed}
                yield name, partial(make_row, kind, rate, network, seed)


def run() -> None:
    args = options(__doc__).parse_args()
    make(Table("valley_digits.json", "rows"), cells(), args)


if __name__ == "__main__":
    main(run)
