"""scikit-learn's handwritten digits: 1,797 images of 8 x 8, embedded, nothing to download."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from oddly.data.base import Augment, DataOptions, LabelledData, Recipe, Split
from oddly.data.transforms import channel_statistics

SPLIT_SEED = 0


def load_digits(options: DataOptions) -> LabelledData:
    """1,437 training and 360 test images, always the same ones."""
    from sklearn.datasets import load_digits as read_digits

    digits = read_digits()
    pixels = np.rint(digits.images * (255 / 16)).astype(np.uint8)  # 0..16 -> 0..255
    images = torch.from_numpy(pixels)[:, None]
    labels = torch.from_numpy(digits.target.astype(np.int64))
    in_test = torch.from_numpy(_choose_test(digits.target))
    mean, std = channel_statistics(images[~in_test])
    return LabelledData(
        name="digits",
        class_names=[str(digit) for digit in range(10)],
        train=Split(images[~in_test], labels[~in_test], [f"train/{i:05d}" for i in range(1437)]),
        test=Split(images[in_test], labels[in_test], [f"test/{i:05d}" for i in range(360)]),
        true_labels=labels[~in_test],
        image_shape=(1, 8, 8),
        mean=mean,
        std=std,
        augment=Augment(pad=1),
        recipe=Recipe("wrn-10-2", epochs=40, batch_size=64, learning_rate=0.1, weight_decay=5e-3),
    )


def _choose_test(labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Every fifth example after shuffling inside the classes: stratified to within one."""
    # RandomState, because NumPy promises that its numbers never change.
    shuffled = np.random.RandomState(SPLIT_SEED).permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    mask = np.zeros(len(labels), dtype=np.bool_)
    mask[by_class[::5]] = True
    return mask
