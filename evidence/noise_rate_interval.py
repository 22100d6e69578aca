"""How often the interval of the noise rate holds the truth: noise_rate_interval_features.json.

    python -m evidence.noise_rate_interval --data-dir DATA     # 6 rows; 7 minutes on a core

DATA holds the official CIFAR-10 and the labels of CIFAR-10N. The columns `…_before` belong to an
earlier rule and are not made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch

from evidence.again import Cells, Row, Table, main, make, options
from evidence.features import Features, cifar10
from evidence.heads import train_denoised
from evidence.labels import replace_some
from oddly.core import Denoiser, Verdict
from oddly.engine.embed import head_recipe

SIZES = ((10, 10_000), (10, 1_500), (10, 600), (3, 600), (3, 300), (2, 300))
RATES = (0.0, 0.1, 0.2, 0.4)
CHOSEN = (0, 3, 5)  # where there are few classes: airplanes, cats, dogs


def judge(inputs: torch.Tensor, given: torch.Tensor, classes: int, seed: int) -> Verdict:
    """A linear head as `oddly clean` trains it, until it comes to a verdict."""
    recipe = head_recipe(len(given), classes)
    torch.manual_seed(seed)
    head = torch.nn.Linear(inputs.shape[1], classes)
    denoiser = Denoiser(len(given), classes, recipe.epochs, counterfactual="sentinels", seed=seed)
    denoiser.warns = False
    for _ in train_denoised(head, inputs, given, recipe, denoiser):
        if denoiser.verdict is not None:
            break
    return denoiser.judge_now(head)


def measure(load: Callable[[], Features], classes: int, examples: int) -> Row:
    images = load()
    chosen = list(CHOSEN[:classes] if classes < 10 else range(10))
    held, widths = [], []
    for seed in range(3 if examples > 5_000 else 6):
        pool = np.flatnonzero(np.isin(images.true, chosen))
        drawn = np.random.RandomState(seed).permutation(pool)[:examples]
        true = np.searchsorted(chosen, images.true[drawn])
        for rate in RATES:
            given = replace_some(true, classes, rate, np.random.RandomState(100 + seed))
            verdict = judge(images.inputs[drawn], torch.from_numpy(given), classes, seed)
            assert verdict.noise_rate is not None
            _, low, high = verdict.noise_rate
            held.append(low <= float((given != true).mean()) <= high)
            widths.append(high - low)
    width = round(float(np.mean(widths)), 3)
    return {"trainings": len(held), "held": sum(held), "mean_width": width}


def cells(data_dir: Path | None, out: Path) -> Cells:
    load = cache(lambda: cifar10(data_dir, out).scaled())
    for classes, examples in SIZES:
        yield (
            {"classes": classes, "examples": examples},
            partial(measure, load, classes, examples),
        )


def run() -> None:
    parser = options(__doc__)
    parser.add_argument("--data-dir", type=Path, help="where the official folders lie")
    args = parser.parse_args()
    make(Table("noise_rate_interval_features.json", "cases"), cells(args.data_dir, args.out), args)


if __name__ == "__main__":
    main(run)
