"""Images of no class among those that are cleaned, as where they were scraped: foreign_images.json.

    python -m evidence.foreign --data-dir DATA     # 8 rows; less than half an hour on two cores

DATA holds the official CIFAR-10 and CIFAR-100. Some of 6,000 images of CIFAR-10 are exchanged for
images of CIFAR-100, under any label or under one of the three classes that they look most like.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from evidence.again import Cells, Row, Table, main, make, options
from evidence.cleanlab_folds import judge_with_cleanlab
from evidence.features import SIZE, embed
from evidence.figures import figures, rounded
from evidence.held_out import clean
from evidence.labels import Labels
from evidence.recorded_cases import with_data_dir
from evidence.small_images import EXAMPLES
from oddly.data import DataOptions, load_data
from oddly.data.base import LabelledData
from oddly.methods.confident_learning import import_cleanlab

ALIKE = 3
KINDS = {"any": (10, 20, 40), "alike": (20,)}
SEEDS = (0, 1)


def load(name: str, data_dir: Path | None) -> tuple[LabelledData, Tensor]:
    data = load_data(name, DataOptions(data_dir=data_dir))
    assert isinstance(data.train.images, Tensor)
    return data, data.train.images


def mislabel(kind: str, features: Tensor, given: Labels, foreign: NDArray[np.bool_]) -> Labels:
    """A label for each foreign image; the others keep theirs."""
    draw = np.random.default_rng(0)
    classes = int(given.max()) + 1
    if kind == "any":
        return np.where(foreign, draw.integers(classes, size=len(given)), given)
    own = [features[(given == k) & ~foreign].mean(0) for k in range(classes)]
    likeness = torch.cosine_similarity(features[:, None], torch.stack(own)[None], dim=2)
    nearest = likeness.topk(ALIKE).indices.numpy()
    drawn = nearest[np.arange(len(given)), draw.integers(ALIKE, size=len(given))]
    return np.where(foreign, drawn, given)


def make_row(kind: str, rate: int, seed: int, data_dir: Path | None, out: Path) -> Row:
    ours, pixels = load("cifar10", data_dir)
    _, others = load("cifar100", data_dir)
    draw = np.random.default_rng(seed)
    chosen, guests = (draw.permutation(len(images))[:EXAMPLES] for images in (pixels, others))
    foreign = draw.permutation(EXAMPLES) < rate * EXAMPLES // 100
    own, guest = pixels[chosen], others[guests]
    mixed = torch.from_numpy(foreign)[:, None]
    images = torch.where(mixed[..., None, None], guest, own)
    features = torch.where(mixed, embed(guest, SIZE, out), embed(own, SIZE, out))
    names = [
        f"images/{'guest' if is_foreign else 'own'}{there if is_foreign else here:05d}.png"
        for here, there, is_foreign in zip(chosen, guests, foreign, strict=True)
    ]
    (out / "images").mkdir(parents=True, exist_ok=True)
    for name, image in zip(names, images, strict=True):
        if not (out / name).exists():  # an untouched file's features are not computed again
            Image.fromarray(image.permute(1, 2, 0).numpy()).save(out / name)
    given = mislabel(kind, features, ours.train.labels.numpy()[chosen], foreign)
    run, found = clean(out, names, given, tuple(ours.class_names), image_size=SIZE)
    noise = run.summary["estimated_noise"]
    rival = judge_with_cleanlab(features.numpy(), given, seed)
    return {
        "oddly": figures(found["keep"], found["score"], foreign),
        "estimated_noise": [rounded(noise[end]) for end in ("low", "rate", "high")],
        "cleanlab": figures(rival.keep, rival.scores, foreign),
    }


def cells(data_dir: Path | None, out: Path) -> Cells:
    for kind, rates in KINDS.items():
        for rate in rates:
            for seed in SEEDS:
                name = {"labels": kind, "foreign": rate, "seed": seed}
                yield name, partial(make_row, kind, rate, seed, data_dir, out)


def run() -> None:
    args = with_data_dir(options(__doc__)).parse_args()
    import_cleanlab()  # now, not after the first training
    make(Table("foreign_images.json", "rows"), cells(args.data_dir, args.out / "foreign"), args)


if __name__ == "__main__":
    main(run)
