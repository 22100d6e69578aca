"""Trainings in the engine's own loop up to their verdict, without later looks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evidence.features import Features
from evidence.heads import hidden_head
from oddly.core import Verdict, denoiser, judging
from oddly.core.judging import judge_by_sentinels
from oddly.core.sentinels.planting import Scored
from oddly.data.base import LabelledData, Split
from oddly.data.noise import uniform
from oddly.engine.build import build
from oddly.engine.config import RunConfig
from oddly.engine.fast import fast_model
from oddly.engine.loop import run_epoch
from oddly.engine.watch import Watcher
from oddly.errors import InputError
from oddly.models import MODELS

HEAD = {"epochs": 20, "batch_size": 64, "learning_rate": 0.05, "weight_decay": 5e-4}
HEAD_SEED = 5
Judged = tuple[Verdict, NDArray[np.bool_], int]
"""A verdict without later looks, which labels were wrong, how many classes there are."""


def judge(data: LabelledData, percentile: float | None, **asked: Any) -> Judged:
    """Train until there is a verdict."""
    config = RunConfig.from_options(data.name, {**asked, "percentile": percentile, "device": "cpu"})
    with torch.random.fork_rng():
        parts = build(config, replace(data, test=None))
        model = fast_model(parts)
        for epoch in range(parts.config.epochs or 0):
            run_epoch(parts, model, epoch, Watcher())
            if isinstance(verdict := parts.method.verdict, Verdict):
                assert data.true_labels is not None
                wrong = (data.train.labels != data.true_labels).numpy()
                return verdict, wrong, len(data.class_names)
    raise InputError(f"{data.name}: no verdict within {parts.config.epochs} epochs")


def calling_nothing() -> AbstractContextManager[Any]:
    """Without the look for classes called another, which came last: for tables of other rules."""
    return mock.patch.object(judging, "find_called", return_value=())


def judge_twice(
    data: LabelledData, stand_in: AbstractContextManager[Any], **asked: Any
) -> tuple[Judged, Verdict]:
    """A training's verdict, and what it would have been with that patched."""
    others: list[Verdict] = []

    def judge_both(examples: Scored, *rest: Any) -> Verdict:
        copied = Scored(*(column.clone() for column in examples))  # scores are shifted in place
        with stand_in:
            others.append(judge_by_sentinels(copied, *rest))
        return judge_by_sentinels(examples, *rest)

    with mock.patch.object(denoiser, "judge_by_sentinels", judge_both):
        judged = judge(data, None, method="odd", **asked)
    (other,) = others
    return judged, other


def labelled(
    name: str, images: Tensor, given: Tensor, true: Tensor, *, classes: int = 10, **more: Any
) -> LabelledData:
    """Without a test set."""
    return LabelledData(
        name=name,
        class_names=[str(k) for k in range(classes)],
        train=Split(images, given, [str(place) for place in range(len(given))]),
        test=None,
        true_labels=true,
        **more,
    )


def judge_head(load: Callable[[], Features], name: str, percentile: float | None) -> Judged:
    """A head with a hidden layer, in the engine; noise as `oddly.data` adds it."""
    images = load()
    first, _, rest = name.partition(" and ")
    kind = first.removeprefix("CIFAR-10").removeprefix("N ").removeprefix(", ")
    true = torch.from_numpy(images.true)
    given = torch.from_numpy(images.human.get(kind, images.true))
    noise = rest or (kind if kind.startswith("uniform") else "")
    if noise:
        rate = int(noise.split()[1]) / 100
        given = uniform(given, 10, rate, torch.Generator().manual_seed(HEAD_SEED))
    shape = (images.inputs.shape[1], 1, 1)
    data = labelled("head", images.inputs, given, true, image_shape=shape, mean=(0.0,), std=(1.0,))
    with mock.patch.dict(MODELS, hidden_head=lambda classes, size: hidden_head(size, classes)):
        return judge(data, percentile, method="odd", model="hidden_head", seed=HEAD_SEED, **HEAD)
