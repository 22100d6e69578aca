"""CIFAR-50 and CIFAR-20: classes of CIFAR-100 joined, some of them thinned out (the paper, 4.1).

`cifar50:C` joins class 2k with class 2k + 1 and removes C % of the odd one; `cifar20:C` joins the
five classes of a super-class and removes C % of four of them. Training and test set alike. The
paper does not say which of the five stays whole; here it is the first. The images to remove are
drawn once, from a fixed seed, so that the data are the same for every seed of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from oddly.data.base import DataOptions, LabelledData, Split
from oddly.data.cifar import load_cifar100

REMOVED = (30, 50, 70)
MERGED = tuple(f"cifar{n}:{percent}" for n in (50, 20) for percent in REMOVED)
SEEDS = {"train": 0, "test": 1}


def load_merged_cifar(name: str, options: DataOptions) -> LabelledData:
    """One of `MERGED`."""
    number, percent = name.removeprefix("cifar").split(":")
    data = load_cifar100(options)
    assert data.test is not None and data.confused_with is not None
    groups = pairs() if number == "50" else super_classes(data.confused_with)
    train = merge(data.train, groups, int(percent), SEEDS["train"])
    return replace(
        data,
        name=name,
        class_names=[" / ".join(data.class_names[k] for k in group) for group in groups],
        train=train,
        test=merge(data.test, groups, int(percent), SEEDS["test"]),
        true_labels=train.labels,
        confused_with=None,
    )


def pairs() -> list[list[int]]:
    """Each even class with the odd one after it."""
    return [[k, k + 1] for k in range(0, 100, 2)]


def super_classes(next_inside: Sequence[int]) -> list[list[int]]:
    """The twenty groups of five, from the circle "next class of the same super-class"."""
    groups: list[list[int]] = []
    for start in range(len(next_inside)):
        if not any(start in group for group in groups):
            group = [start]
            while next_inside[group[-1]] != start:
                group.append(next_inside[group[-1]])
            groups.append(sorted(group))
    return groups


def merge(split: Split, groups: Sequence[Sequence[int]], percent: int, seed: int) -> Split:
    """The split with joined labels; all of each group's first class, and a part of the others."""
    generator = torch.Generator().manual_seed(seed)
    keep = torch.ones(len(split), dtype=torch.bool)
    new_label = torch.empty(100, dtype=torch.int64)
    for place, group in enumerate(groups):
        new_label[list(group)] = place
        for thinned in group[1:]:
            members = (split.labels == thinned).nonzero().flatten()
            order = torch.randperm(len(members), generator=generator)
            keep[members[order[: round(len(members) * percent / 100)]]] = False
    kept = split.take(keep.nonzero().flatten())
    return replace(kept, labels=new_label[kept.labels])
