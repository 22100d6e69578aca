"""What every listed dataset and network must do."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from oddly.data import DATASETS, load_data
from oddly.data.base import DataOptions, LabelledData
from oddly.data.merged_cifar import MERGED
from oddly.engine.build import build
from oddly.engine.config import RunConfig
from oddly.models import MODELS

EMBEDDED = ("digits", "synthetic")


def check_data(data: LabelledData) -> None:
    classes, channels = len(data.class_names), data.image_shape[0]
    for split in (data.train, data.test):
        assert split is not None and len(split) == len(split.ids) == len(set(split.ids))
        assert split.labels.dtype == torch.int64
        assert int(split.labels.min()) >= 0 and int(split.labels.max()) == classes - 1
        assert isinstance(split.images, Tensor) and split.images.dtype == torch.uint8
        assert tuple(split.images.shape) == (len(split), *data.image_shape)
    assert len(data.mean) == len(data.std) == channels and min(data.std) > 0
    assert data.true_labels is not None and data.true_labels.shape == data.train.labels.shape


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_data(name: str) -> None:
    check_data(load_data(name, DataOptions()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_official_data(name: str, cifar_root: Path) -> None:
    check_data(load_data(name, DataOptions(data_dir=cifar_root)))


def test_no_dataset_is_left_untested() -> None:
    # Their tests: tests/data/test_cifar_n.py, test_merged_cifar.py and test_large.py.
    human = {name for name in DATASETS if "n:" in name or name == "cifar100n"}
    large = {"imagenet", "webvision", "webvision:mini", "clothing1m:noisy", "clothing1m:clean"}
    assert set(DATASETS) == {*EMBEDDED, "cifar10", "cifar100", *human, *MERGED, *large}


@pytest.mark.parametrize("name", [*MODELS, "wrn-10-1"])
def test_every_network_takes_a_step(name: str) -> None:
    parts = build(RunConfig("synthetic", model=name, device="cpu"))
    before = [weight.detach().clone() for weight in parts.model.parameters()]
    _, (inputs,), labels = next(iter(parts.train_feed.batches(torch.arange(6))))
    logits = parts.model(inputs)
    assert logits.shape == (6, 3)
    torch.nn.functional.cross_entropy(logits, labels).backward()
    parts.optimizer.step()
    changed = [
        not torch.equal(old, new) for old, new in zip(before, parts.model.parameters(), strict=True)
    ]
    assert all(changed)
