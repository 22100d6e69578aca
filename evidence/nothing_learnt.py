"""Trainings too short to learn anything, as they end by today's rule: nothing_learnt.json.

    python -m evidence.nothing_learnt --data-dir DATA       # 7 rows; two minutes on a core

They are those whose contrast was less than 5 among the doubted ones that contrast_runs.json has
twice (`removing_less`). DATA holds the official
CIFAR-10 and the labels of CIFAR-10N; `--only digits` needs none.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from evidence.again import RESULTS, Cells, Row, Table, main, make, options
from evidence.contrast import FILE, load, read_name, train
from evidence.figures import rounded
from evidence.recorded_cases import with_data_dir
from oddly.core import Verdict
from oddly.core.sentinels.learnt import NOTHING


def make_row(before: Row, data_dir: Path | None) -> Row:
    training = before["training"]
    parts, accuracy = train(load(training, data_dir), method="odd", **read_name(training) or {})
    verdict = parts.method.verdict
    assert isinstance(verdict, Verdict)
    return {
        "wrong": before["wrong"],
        "plain": before["plain"],
        "before": {key: before["less"][key] for key in ("removed", "test_accuracy")},
        "now": {"removed": rounded(verdict.removed_fraction), "test_accuracy": accuracy},
        "epoch": verdict.epoch,
        "contrast": round(verdict.contrast or 0.0, 2),
        "doubted": verdict.tell_doubt() is not None,
    }


def cells(data_dir: Path | None) -> Cells:
    stored = json.loads((RESULTS / FILE).read_text(encoding="utf-8"))
    contrasts = {row["training"]: row["contrast"] for row in stored["runs"]}
    for row in stored["removing_less"]["runs"]:
        if contrasts.get(row["training"], NOTHING) < NOTHING and read_name(row["training"]):
            yield {"training": row["training"]}, partial(make_row, row, data_dir)


def run() -> None:
    args = with_data_dir(options(__doc__)).parse_args()
    make(Table("nothing_learnt.json", "rows"), cells(args.data_dir), args)


if __name__ == "__main__":
    main(run)
