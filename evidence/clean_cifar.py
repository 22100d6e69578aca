"""`oddly clean` on images of CIFAR-10: clean_cifar10.json.

    python -m evidence.clean_cifar --data-dir DATA     # 20 rows; 5 minutes on two cores

DATA holds the official CIFAR-10 and the labels of CIFAR-10N. 10,000 training images, as PNG files
that a table names; a seed is that of the noise, if any is added, and of the run.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evidence.again import Cells, Row, Table, main, make, options
from evidence.figures import figures, rounded
from evidence.held_out import clean, save
from evidence.labels import replace_some
from evidence.recorded_cases import with_data_dir
from oddly.data import DataOptions, load_data

EXAMPLES = 10_000
HUMAN = ("aggregate", "random1")
KINDS = {"aggregate": 4, "random1": 4, "uniform20": 4, "uniform40": 4, "clean": 4}
"""How labels go wrong, with the number of seeds."""
SURE = (0.5, 0.7, 0.9, 1.01)


def make_row(kind: str, seed: int, data_dir: Path | None, out: Path) -> Row:
    name = f"cifar10n:{kind}" if kind in HUMAN else "cifar10"
    data = load_data(name, DataOptions(data_dir=data_dir))
    drawn = np.random.RandomState(0).permutation(50_000)[:EXAMPLES]
    truth = data.train.labels if data.true_labels is None else data.true_labels
    true, given = truth.numpy()[drawn], data.train.labels.numpy()[drawn]
    if kind.startswith("uniform"):
        given = replace_some(true, 10, int(kind[-2:]) / 100, np.random.RandomState(100 + seed))
    names = save(np.asarray(data.train.images).transpose(0, 2, 3, 1), drawn, out)
    run, found = clean(out, names, given, tuple(data.class_names), seed=seed)
    wrong, removed = given != true, ~found["keep"].to_numpy()
    noise = run.summary["estimated_noise"]
    row: Row = {
        "wrong": rounded(wrong.mean()),
        "oddly": figures(found["keep"], found["score"], wrong),
        "estimated_noise": [rounded(noise[end]) for end in ("low", "rate", "high")],
    }
    if wrong.any():
        right = found["suggested_name"].to_numpy() == np.array(data.class_names)[true]
        row["suggestion_right"] = rounded(right[removed & wrong].mean())
        row["suggestions"] = suggestions(found[removed], right[removed])
    return row


def suggestions(found: Any, right: Any) -> dict[str, float]:
    """How sure suggestions say that they are, and how often they are right."""
    made = found["suggested_name"].notna().to_numpy()
    said, right = found["suggested_confidence"].to_numpy()[made], right[made]
    told = {"said": rounded(said.mean()), "right": rounded(right.mean())}
    for low, high in zip(SURE, SURE[1:], strict=False):
        told[f"right_from_{low}"] = rounded(right[(said >= low) & (said < high)].mean())
    return told


def cells(data_dir: Path | None, out: Path) -> Cells:
    for kind, seeds in KINDS.items():
        for seed in range(seeds):
            yield {"labels": kind, "seed": seed}, partial(make_row, kind, seed, data_dir, out)


def run() -> None:
    args = with_data_dir(options(__doc__)).parse_args()
    make(Table("clean_cifar10.json", "runs"), cells(args.data_dir, args.out / "cifar"), args)


if __name__ == "__main__":
    main(run)
