"""The sixth percentile beside the one that suits the noise: percentile_recordings.json.

    python -m evidence.percentile --data-dir DATA --fashion FOLDER   # 57 rows

DATA holds the official CIFAR-10 and CIFAR-100 and the labels of CIFAR-10N, FOLDER the official
files of Fashion-MNIST. A row of ResNet-8 takes some minutes on a core, another seconds. Seven more
rows, ResNet-18, were recorded on a GPU and are not made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from evidence.again import Cells, Row, Table, main, make, options
from evidence.engine_runs import Judged, calling_nothing, judge_head
from evidence.fashion_runs import FashionMnist, judge_linear, judge_scratch
from evidence.figures import figures, rounded
from evidence.recorded_cases import CHOSEN, HELD_OUT, Case, Loads, loads_from, with_data_dir
from oddly.core.sentinels.cut import estimate_mixture, known_in_order

Judge = Callable[[float | None], Judged]
"""Given the percentile, None for what suits the noise."""
HEAD = "head on features"
SPECIAL = {
    "CIFAR-10N aggregate, AdamW, 8 epochs": f"CIFAR-10N aggregate, {HEAD}, AdamW",
    "CIFAR-10N aggregate, linear head": f"CIFAR-10N aggregate, linear {HEAD}",
}
SCRATCH = (
    ("asymmetric 30 % both ways", "both 30", 0, 12),
    ("clean", "clean", 0, 12),
    ("clean", "clean", 1, 25),
    ("asymmetric 30 % one way", "one 30", 0, 12),
    ("uniform 20 %", "uniform 20", 0, 12),
    ("uniform 20 %", "uniform 20", 1, 25),
    ("uniform 40 %", "uniform 40", 0, 12),
)
"""Name, kind, seed, epochs."""


def make_row(judge: Judge) -> Row:
    row: Row = {}
    for name, percentile in (("before", 6.0), ("now", None)):
        verdict, wrong, classes = judge(percentile)
        assert verdict.noise_rate is not None
        found = figures(verdict.keep.numpy(), verdict.scores.numpy(), wrong)
        row[name] = {"noise_estimate": [rounded(rate) for rate in verdict.noise_rate]}
        row[name] |= {k: found[k] for k in ("removed", "f1", "best_f1") if k in found}
    known = known_in_order(verdict.scores)
    mixture = estimate_mixture(known, verdict.counterfactual.losses, classes)
    return row | {
        "percentile": verdict.percentile,
        "expected_f1": rounded(mixture.best_cut().f1),
        "error_rate": rounded(wrong.mean()),
        "examples": len(wrong),
        "doubted": verdict.hardly_learnt,
    }


def recorded(case: Case, loads: Loads) -> Judge:
    recording = cache(partial(case.record, loads))

    def judge(percentile: float | None) -> Judged:
        verdict = recording().judge(percentile=percentile)
        return verdict, recording().wrong.numpy(), recording().classes

    return judge


def cells(loads: Loads, clothes: FashionMnist) -> Cells:
    for case in (*CHOSEN, *HELD_OUT):
        name = SPECIAL.get(case.name, f"{case.name}, {HEAD}")
        yield {"case": name}, partial(make_row, recorded(case, loads))
    for title, kind, seed, epochs in SCRATCH:
        name = f"Fashion-MNIST, {title}, ResNet-8, {epochs} epochs"
        yield {"case": name}, partial(make_row, partial(judge_scratch, clothes, kind, seed, epochs))
    linear = [(f"uniform {rate} %", f"uniform{rate}") for rate in (2, 5, 10, 20, 30, 40, 60)]
    linear.append(("asymmetric 30 % both ways", "asymmetric30"))
    runs = [(title, kind, seed) for title, kind in linear for seed in (0, 1)]
    for title, kind, seed in [*runs, ("clean", "clean", 0)]:
        name = f"Fashion-MNIST, {title}, linear {HEAD}" + ", seed 1" * seed
        yield {"case": name}, partial(make_row, partial(judge_linear, clothes, kind, seed, 0))
    for rate in (10, 20):
        name = f"Fashion-MNIST, asymmetric 30 % and uniform {rate} %, linear {HEAD}"
        yield (
            {"case": name},
            partial(make_row, partial(judge_linear, clothes, "asymmetric30", 0, rate)),
        )
    people = [f"CIFAR-10N {kind}" for kind in ("aggregate", "random1")]
    pure = ["CIFAR-10, clean", *(f"CIFAR-10, uniform {rate} %" for rate in (5, 10, 20, 40))]
    for name in (*people, *pure):
        judge = partial(judge_head, loads["cifar10"], name)
        yield {"case": f"{name}, {HEAD}, seed 5"}, partial(make_row, judge)
    for name in [f"{one} and uniform {rate} %" for one in people for rate in (10, 20)]:
        judge = partial(judge_head, loads["cifar10"], name)
        yield {"case": f"{name}, {HEAD}"}, partial(make_row, judge)


def run() -> None:
    parser = with_data_dir(options(__doc__))
    parser.add_argument("--fashion", type=Path, default=Path("fashion-mnist"), metavar="FOLDER")
    args = parser.parse_args()
    work = cells(loads_from(args), FashionMnist(args.fashion, args.out))
    with calling_nothing():
        make(Table("percentile_recordings.json", "runs"), work, args)


if __name__ == "__main__":
    main(run)
