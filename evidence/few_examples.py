"""Which counterfactual suits few examples: few_examples_digits.json.

    python -m evidence.few_examples      # 90 rows of 8 trainings; 7 minutes on a core

A loop of one's own on few of the digits that come with the installation.
"""

from __future__ import annotations

from functools import partial
from statistics import mean

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from evidence.again import Cells, Row, Table, main, make, options
from oddly.core import Denoiser, Verdict
from oddly.data import DataOptions, load_data
from oddly.errors import InputError

SCHEDULES = ((6, 0.05), (20, 0.05), (60, 0.05), (20, 0.01))
"""Epochs and learning rate."""
SEEDS = (0, 1)
BATCH_SIZE, HIDDEN = 16, 64


def draw(
    classes: int, examples: int, noise: float, seed: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs, given labels, and which of these are wrong."""
    digits = load_data("digits", DataOptions()).train
    assert isinstance(digits.images, torch.Tensor)
    generator = torch.Generator().manual_seed(examples + seed)
    order = torch.randperm(len(digits), generator=generator)
    chosen = order[digits.labels[order] < classes][:examples]
    true = digits.labels[chosen]
    wrong = torch.rand(examples, generator=generator) < noise
    shift = torch.randint(1, classes, (examples,), generator=generator)
    given = torch.where(wrong, (true + shift) % classes, true)
    return digits.images[chosen].flatten(1).float() / 255, given, wrong


def train(
    inputs: torch.Tensor,
    given: torch.Tensor,
    classes: int,
    counterfactual: str,
    schedule: tuple[int, float],
    seed: int,
) -> Verdict:
    epochs, learning_rate = schedule
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(inputs.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, classes))
    optimiser = torch.optim.SGD(model.parameters(), learning_rate, momentum=0.9)
    denoiser = Denoiser(len(given), classes, epochs, counterfactual=counterfactual, seed=seed)
    denoiser.warns = False
    examples = TensorDataset(inputs, given, torch.arange(len(given)))
    loader = DataLoader(examples, BATCH_SIZE, sampler=denoiser.sampler)
    for _ in range(epochs):
        for x, y, index in loader:
            labels = denoiser.plant(index, y)
            logits = model(x)
            denoiser.observe(index, logits, labels)
            optimiser.zero_grad()
            cross_entropy(logits, labels).backward()
            optimiser.step()
        denoiser.end_epoch(model)
    return denoiser.judge_now(model)


def make_row(counterfactual: str, classes: int, examples: int, noise: float) -> Row:
    f1s, losts, refused = [], [], 0
    for schedule in SCHEDULES:
        for seed in SEEDS:
            inputs, given, wrong = draw(classes, examples, noise, seed)
            try:
                verdict = train(inputs, given, classes, counterfactual, schedule, seed)
            except InputError:  # it would remove everything
                refused += 1
                continue
            removed = ~verdict.keep
            hits, both = int((removed & wrong).sum()), int(removed.sum() + wrong.sum())
            f1s.append(2 * hits / max(1, both))
            losts.append(float((removed & ~wrong).sum() / (~wrong).sum()))
    return {
        "trainings": len(f1s) + refused,
        "refused": refused,
        "f1": round(mean(f1s), 3) if f1s and noise else None,
        "right_labels_lost": round(mean(losts), 3) if losts else None,
    }


def cells() -> Cells:
    for classes in (3, 10):
        for examples in (50, 100, 150, 200, 280):
            for noise in (0.0, 0.2, 0.4):
                for name in ("sentinels", "weights", "wrong_label"):
                    row = {"counterfactual": name, "classes": classes, "examples": examples}
                    work = partial(make_row, name, classes, examples, noise)
                    yield {**row, "noise": noise}, work


def run() -> None:
    args = options(__doc__).parse_args()
    make(Table("few_examples_digits.json", "rows"), cells(), args)


if __name__ == "__main__":
    main(run)
