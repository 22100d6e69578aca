"""Features with and without what all images have in common: common_mean.json.

    python -m evidence.common_mean --data-dir DATA --mnist FOLDER --fashion FOLDER --folders FOLDER

41 rows, 10 minutes; the small sets as in small_trial.py, the folders as in folders.py. A linear
head as `oddly clean` trains it, judged at E, before any later look; means of two seeds.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from evidence.again import Cells, Row, Table, main, make, options
from evidence.engine_runs import calling_nothing
from evidence.features import embed_source
from evidence.figures import figures, rounded
from evidence.folders import give
from evidence.heads import train_denoised
from evidence.held_out import save
from evidence.labels import Labels, replace_some
from evidence.recorded_cases import with_data_dir
from evidence.small_trial import Folders, load
from oddly.clean.settings import BACKBONE_SIZE
from oddly.core import Denoiser
from oddly.data import DataOptions, load_data
from oddly.data.source import ImageFiles, ImageSource
from oddly.engine.embed import head_recipe
from oddly.models import build_model

SMALL, NUMBER = ("digits", "mnist", "fashion", "cifar10"), 1_700
OTHERS = ("hands", "sketches", "leaves", "clothing", "clip art")
RANDOM = ("uniform10", "uniform20", "uniform40", "clean")
SEEDS = range(2)
Seen = tuple[Tensor, Labels, int]


@cache
def see(name: str, small: Folders, folders: Path, out: Path) -> Seen:
    """Features, true labels and the number of classes."""
    if name in SMALL:
        pixels, labels = load(name, small)
        drawn = np.random.default_rng(3).permutation(len(pixels))[:NUMBER]
        source = ImageFiles(str(out), save(pixels, drawn, out), BACKBONE_SIZE)
        return embed_source(source, out), labels[drawn], 10
    data = load_data(str(folders / name), DataOptions(decode=False))
    images = data.train.images
    assert isinstance(images, ImageSource)
    features = embed_source(images.resized(BACKBONE_SIZE), out)
    return features, data.train.labels.numpy(), len(data.class_names)


def judge(inputs: Tensor, given: Labels, true: Labels, classes: int, seed: int) -> Row:
    torch.manual_seed(seed)
    recipe = head_recipe(len(inputs), classes)
    head = build_model("feature_head", classes, inputs.shape[1], 1)
    denoiser = Denoiser(
        len(inputs), classes, epochs=recipe.epochs, seed=seed, counterfactual="sentinels"
    )
    denoiser.warns = False
    scaled = inputs * float(inputs.square().sum(1).mean().rsqrt())
    for _ in train_denoised(head, scaled, torch.tensor(given), recipe, denoiser):
        pass
    assert denoiser.verdict
    return figures(denoiser.verdict.keep.numpy(), denoiser.verdict.scores.numpy(), given != true)


def make_row(name: str, kind: str, small: Folders, folders: Path, out: Path) -> Row:
    features, true, classes = see(name, small, folders, out)
    mean = features.mean(0)
    share = float(mean.square().sum() / features.square().sum(1).mean())
    row: Row = {"share": rounded(share)}
    for way, inputs in (("with", features), ("without", features - mean)):
        found = []
        for seed in SEEDS:
            if kind.startswith("uniform"):
                draw = np.random.default_rng(70 + seed)
                given = replace_some(true, classes, int(kind[7:]) / 100, draw)
            else:
                given = true if kind == "clean" else give(kind, true, features.numpy(), classes)
            found.append(judge(inputs, given, true, classes, seed))
        row[way] = {each: rounded(np.mean([one[each] for one in found])) for each in found[0]}
    return row


def cells(small: Folders, folders: Path, out: Path) -> Cells:
    for name in (*SMALL, *OTHERS):
        for kind in RANDOM if name in SMALL else (*RANDOM[:3], "alike30", "clean"):
            row = {"images": name, "labels": kind}
            yield row, partial(make_row, name, kind, small, folders, out / name)


def run() -> None:
    parser = with_data_dir(options(__doc__))
    for each in ("mnist", "fashion", "folders"):
        parser.add_argument(f"--{each}", type=Path, required=True)
    args = parser.parse_args()
    small = Folders(args.data_dir, args.mnist, args.fashion)
    with calling_nothing():
        make(
            Table("common_mean.json", "rows"),
            cells(small, args.folders, args.out / "common_mean"),
            args,
        )


if __name__ == "__main__":
    main(run)
