"""Hold out a test set, for data without one: a share of the training examples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from oddly.data.base import LabelledData
from oddly.data.labels import read_trusted
from oddly.engine.config import RunConfig
from oddly.errors import InputError

SEED = 0x7E57  # fixed, so that every method and seed is tested on the same examples


def hold_out_test(data: LabelledData, config: RunConfig) -> LabelledData:
    """The data with a share `config.hold_out`, if any, of every class as the test set.

    Its labels are the given ones, including wrong ones, since the true ones are unknown.
    """
    if not config.hold_out:
        return data
    if data.test is not None:
        raise InputError(f"{data.name} has a test set: hold_out is for data without one")
    free = torch.ones(len(data.train), dtype=torch.bool)
    if config.trusted is not None and not str(config.trusted).isdecimal():
        free[read_trusted(data, Path(str(config.trusted)))[0]] = False  # they are for training
    candidates = free.nonzero().flatten()
    number = round(config.hold_out * len(candidates))
    if not number:
        raise InputError(
            f"{data.name}: {len(candidates):,} examples are too few to hold {config.hold_out:g} of"
            " them out as a test set"
        )
    places = candidates[choose_evenly(data.train.labels[candidates], number)]
    return replace(data.without(places), test=data.train.take(places))


def choose_evenly(labels: Tensor, number: int) -> Tensor:
    """Indices of `number` random examples, of every class nearly the same share."""
    shuffled = torch.randperm(len(labels), generator=torch.Generator().manual_seed(SEED))
    classes = labels[shuffled]
    # The relative rank within the class, 0..1: taking ranks below 0.1 takes a tenth of each class.
    depth = (rank_in_class(classes) + 0.5) / classes.bincount()[classes]
    return shuffled[depth.argsort(stable=True)[:number]].sort().values


def rank_in_class(classes: Tensor) -> Tensor:
    """Each example's rank within its class, from 0, in the given order."""
    order, counts = classes.argsort(stable=True), classes.bincount()
    first = counts.cumsum(0) - counts  # the start of each class in `order`
    ranks = torch.empty_like(classes)
    ranks[order] = torch.arange(len(classes)) - first[classes[order]]
    return ranks
