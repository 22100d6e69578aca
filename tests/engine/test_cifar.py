"""The claim itself, on real pictures: denoising beats plain training under label noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

import oddly
from oddly.data import load_data
from oddly.data.base import Augment, DataOptions, LabelledData, Split

TRAIN, TEST = 5_000, 2_000


def first(split: Split, number: int) -> Split:
    """The first images at half their side, so that one core trains a net in a minute."""
    assert isinstance(split.images, Tensor)
    images = avg_pool2d(split.images[:number].float(), 2).round().to(torch.uint8)
    return Split(images, split.labels[:number], split.ids[:number])


@pytest.fixture(scope="module")
def data(cifar_root: Path) -> LabelledData:
    """Without augmentation a small net memorises in 30 epochs what takes a large one 200."""
    whole = load_data("cifar10", DataOptions(data_dir=cifar_root))
    assert whole.test is not None and whole.true_labels is not None
    return replace(
        whole,
        train=first(whole.train, TRAIN),
        test=first(whole.test, TEST),
        true_labels=whole.true_labels[:TRAIN],
        image_shape=(3, 16, 16),
        augment=Augment(),
    )


@pytest.mark.slow
def test_odd_beats_erm_on_cifar10_with_40_percent_noise(data: LabelledData, tmp_path: Path) -> None:
    erm, odd = (
        oddly.train(
            data,
            tmp_path / method,
            method=method,
            noise=0.4,
            model="resnet8",
            epochs=30,
            device="cpu",
        ).summary
        for method in ("erm", "odd")
    )
    # Seen with seeds 0, 1, 2: 32.2, 31.6, 31.0 against 44.5, 42.9, 42.3. The setting is one where
    # plain training memorises; with augmentation and fewer epochs the net is underfitted and ODD
    # loses. Seed 0, as many removed at random at the same epoch: 30.9, so it is the choice that
    # helps; precision .515 where .36 would be chance.
    assert odd["test_accuracy"] > erm["test_accuracy"] + 5
    assert odd["recall"] > 0.7
    assert odd["precision"] > 1.3 * odd["noise"]["realised"]  # chance would be 1
