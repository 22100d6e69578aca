"""Whether a verdict is to be trusted: the trainings of contrast_runs.json that the engine makes.

    python -m evidence.contrast --data-dir DATA     # 44 of 96 rows, up to minutes each

DATA holds the official CIFAR-10 and the labels of CIFAR-10N; `--only digits` needs none. What
doubted verdicts remove is less than the rows say, which are older: `removing_less` has both.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from evidence.again import RESULTS, Cells, Row, Table, main, make, options
from evidence.figures import figures
from evidence.recorded_cases import with_data_dir
from evidence.small_trainings import SCRATCH
from oddly.core import Verdict
from oddly.data import DataOptions, load_data
from oddly.data.base import LabelledData
from oddly.engine.build import Parts, build
from oddly.engine.config import RunConfig
from oddly.engine.fast import fast_model
from oddly.engine.loop import run_epoch
from oddly.engine.watch import Watcher

FILE = "contrast_runs.json"
TEST = 2_000  # of CIFAR-10's test images
NAME = re.compile(
    r"(?P<data>digits|[\d,]+ of CIFAR-10)(?P<people>N aggregate)?"
    r"(, (clean|(?P<kind>uniform|instance noise) (?P<rate>\d+) %))?"
    r"(?P<resnet>, ResNet-8)?, (?P<epochs>\d+) epochs(, seed (?P<seed>\d))?"
)


def read_name(training: str) -> dict[str, Any] | None:
    """The options of a training by what it is called; None for one that is not the engine's."""
    found = NAME.fullmatch(training)
    if found is None:
        return None
    asked: dict[str, Any] = {}
    if found["resnet"]:
        asked = {**SCRATCH, "batch_size": 64 if found["data"] == "digits" else 128}
    asked |= {"epochs": int(found["epochs"]), "seed": int(found["seed"] or 0)}
    if found["rate"]:
        kind = found["kind"].removesuffix(" noise")
        asked |= {"noise": int(found["rate"]) / 100, "noise_kind": kind}
    return asked


def load(training: str, data_dir: Path | None) -> LabelledData:
    """Digits, or the first images of CIFAR-10."""
    first, _, rest = training.partition(" of ")
    if not rest:
        return load_data("digits", DataOptions())
    name = "cifar10n:aggregate" if rest.startswith("CIFAR-10N") else "cifar10"
    data = load_data(name, DataOptions(data_dir=data_dir))
    assert data.test is not None
    test = data.test.take(torch.arange(TEST))
    return replace(data.take(torch.arange(int(first.replace(",", "")))), test=test)


def train(data: LabelledData, **asked: Any) -> tuple[Parts, float]:
    """All epochs, and the test accuracy after the last."""
    config = RunConfig.from_options(data.name, {**asked, "device": "cpu"})
    with torch.random.fork_rng():
        parts = build(config, data)
        model = fast_model(parts)
        rows = [run_epoch(parts, model, epoch, Watcher()) for epoch in range(asked["epochs"])]
    return parts, round(rows[-1]["test_accuracy"], 1)


def make_row(training: str, known: Row, data_dir: Path | None) -> Row:
    data, asked = load(training, data_dir), read_name(training) or {}
    _, plain = train(data, method="erm", **asked)
    parts, accuracy = train(data, method="odd", percentile=6.0, **asked)
    verdict, truth = parts.method.verdict, parts.data.true_labels
    assert isinstance(verdict, Verdict) and truth is not None
    wrong, keep = (parts.data.train.labels != truth).numpy(), verdict.keep.numpy()
    found = figures(keep, verdict.scores.numpy(), wrong)
    return known | {
        "examples": len(keep),
        "classes": len(data.class_names),
        "wrong": round(float(wrong.mean()), 3),
        "contrast": round(verdict.contrast or 0.0, 2),
        "needed": round(verdict.contrast_needed or 0.0, 2),
        "removed": round(found["removed"], 3),
        "right_labels_lost": round(float((~keep)[~wrong].mean()), 3),
        "precision": round(found["precision"], 3) if "precision" in found else None,
        "test_accuracy": accuracy,
        "test_accuracy_plain": plain,
        "doubted": verdict.tell_doubt() is not None,
    }


def cells(data_dir: Path | None) -> Cells:
    told = ("settings", "held_out", "in_the_table")
    for row in json.loads((RESULTS / FILE).read_text(encoding="utf-8"))["runs"]:
        if read_name(row["training"]) is not None:
            known = {key: row[key] for key in told}
            yield {"training": row["training"]}, partial(make_row, row["training"], known, data_dir)


def run() -> None:
    args = with_data_dir(options(__doc__)).parse_args()
    make(Table(FILE, "runs"), cells(args.data_dir), args)


if __name__ == "__main__":
    main(run)
