from __future__ import annotations

from pathlib import Path

import pytest
import torch

from oddly.data import load_data
from oddly.data.base import DataOptions, Split
from oddly.data.merged_cifar import MERGED, merge, pairs, super_classes


def test_merge_by_hand() -> None:
    """Classes 0 and 1 of ten each: all of 0, half of 1, under the label 0; 2 and 3 likewise."""
    labels = torch.arange(4).repeat(10)
    images = torch.arange(40, dtype=torch.uint8).view(40, 1, 1, 1)
    split = Split(images, labels, [f"train/{i}" for i in range(40)])
    merged = merge(split, [[0, 1], [2, 3]], 50, seed=0)
    assert isinstance(merged.images, torch.Tensor)
    kept = merged.images.flatten().long()
    assert torch.bincount(labels[kept]).tolist() == [10, 5, 10, 5]
    assert torch.equal(merged.labels, labels[kept] // 2)
    assert merged.ids == [f"train/{i}" for i in kept.tolist()]
    again = merge(split, [[0, 1], [2, 3]], 50, seed=0)
    assert again.ids == merged.ids and merge(split, pairs()[:2], 50, seed=1).ids != merged.ids


def test_super_classes_are_the_circles() -> None:
    assert super_classes([2, 3, 4, 1, 0]) == [[0, 2, 4], [1, 3]]


def test_the_names() -> None:
    assert set(MERGED) == {f"cifar{n}:{c}" for n in (20, 50) for c in (30, 50, 70)}


def test_the_real_ones(cifar_root: Path) -> None:
    whole = load_data("cifar100", DataOptions(data_dir=cifar_root))
    place = {name: i for i, name in enumerate(whole.train.ids)}
    for name, kept in (("cifar50:70", 500 + 150), ("cifar20:30", 500 + 4 * 350)):
        data = load_data(name, DataOptions(data_dir=cifar_root))
        counts = torch.bincount(data.train.labels)
        assert counts.tolist() == [kept] * len(data.class_names)
        assert data.test is not None and len(data.test) == len(data.train) // 5
        fine = whole.train.labels[[place[i] for i in data.train.ids]]
        assert torch.bincount(fine).max() == 500
    beaver = next(name for name in data.class_names if "beaver" in name)
    assert beaver == "beaver / dolphin / otter / seal / whale"


@pytest.mark.parametrize("name", ["cifar50", "cifar20:40"])
def test_an_unknown_one(name: str) -> None:
    from oddly.errors import InputError

    with pytest.raises(InputError, match="unknown dataset"):
        load_data(name, DataOptions())
