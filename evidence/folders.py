"""`oddly clean` on folders of images that chose nothing: held_out_folders.json.

    python -m evidence.folders FOLDER     # 5 rows for each folder in it; 20 minutes

FOLDER holds image folders, each with a sub-folder per class, under labels that are taken for right.
Those of the stored figures are made by `evidence.cut_folders`; the file says out of what.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import oddly
from evidence.again import Cells, Row, Table, main, make, options
from evidence.cleanlab_folds import judge_with_cleanlab
from evidence.features import embed_source
from evidence.figures import figures, rounded
from evidence.labels import Labels, confuse, replace_some
from oddly.clean.settings import BACKBONE_SIZE
from oddly.data import DataOptions, load_data
from oddly.data.source import ImageSource
from oddly.methods.confident_learning import import_cleanlab

KINDS = ("uniform10", "uniform20", "uniform40", "alike30", "as published")
SEED = 777  # of the noise


def give(kind: str, true: Labels, features: NDArray[np.float32], classes: int) -> Labels:
    draw = np.random.default_rng(SEED)
    if kind == "as published":
        return true
    rate = int(kind[-2:]) / 100
    if kind.startswith("uniform"):
        return replace_some(true, classes, rate, draw)
    half = draw.permutation(classes)[: classes // 2]
    alike = nearest(features, true, classes)
    return confuse(true, {int(k): int(alike[k]) for k in half}, rate, draw)


def nearest(features: NDArray[np.float32], true: Labels, classes: int) -> Labels:
    """The class that looks most like each: whose mean feature points the same way."""
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    means = np.stack([units[true == k].mean(0) for k in range(classes)])
    means -= means.mean(0)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    like = means @ means.T
    np.fill_diagonal(like, -np.inf)
    found: Labels = like.argmax(1).astype(np.int64)
    return found


def make_row(folder: Path, kind: str, out: Path) -> Row:
    data = load_data(str(folder), DataOptions(decode=False))
    source, true = data.train.images, data.train.labels.numpy()
    assert isinstance(source, ImageSource)
    features = embed_source(source.resized(BACKBONE_SIZE), out / folder.name / "seen").numpy()
    given = give(kind, true, features, len(data.class_names))
    names = [str(folder.resolve() / id) for id in data.train.ids]
    table = out / folder.name / "labels.csv"
    label = np.array(data.class_names)[given]
    pd.DataFrame({"path": names, "label": label}).to_csv(table, index=False)
    run = oddly.clean(table, out=out / folder.name / "run", overwrite=True)
    found, wrong = run.verdicts.set_index("id").loc[names], given != true
    noise = run.summary["estimated_noise"]
    rival = judge_with_cleanlab(features, given, 0)
    return {
        "images": len(names),
        "classes": len(data.class_names),
        "wrong": rounded(wrong.mean()),
        "oddly": figures(found["keep"], found["score"], wrong),
        "right_lost": rounded((~found["keep"].to_numpy())[~wrong].mean()),
        "estimated_noise": [rounded(noise[end]) for end in ("low", "rate", "high")],
        "contrast": rounded(run.summary["contrast"]),
        "doubted": run.summary["doubt"] is not None,
        "cleanlab": figures(rival.keep, rival.scores, wrong),
    }


def cells(folders: list[Path], out: Path) -> Cells:
    for folder in folders:
        for kind in KINDS:
            row = {"folder": folder.name, "labels": kind}
            yield row, partial(make_row, folder, kind, out)


def run() -> None:
    parser = options(__doc__)
    parser.add_argument("folder", type=Path, help="holds image folders")
    args = parser.parse_args()
    import_cleanlab()  # now, not after the first training
    folders = sorted(path for path in args.folder.iterdir() if path.is_dir())
    make(Table("held_out_folders.json", "runs"), cells(folders, args.out / "folders"), args)


if __name__ == "__main__":
    main(run)
