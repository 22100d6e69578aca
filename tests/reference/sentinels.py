"""Sentinels one example at a time: whose label is replaced by what, and the margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


def plant(
    shifts: Mapping[int, int], index: Sequence[int], labels: Sequence[int], num_classes: int
) -> list[int]:
    """The labels to train with: only those of sentinels, the keys of `shifts`, are moved."""
    return [
        (label + shifts[i]) % num_classes if i in shifts else label
        for i, label in zip(index, labels, strict=True)
    ]


def given_margin(logits: np.ndarray, given: int, planted: int) -> float:
    """How far the best rival lies above the given label; a planted label is no rival if K > 2."""
    rivals = [
        float(logit)
        for label, logit in enumerate(logits)
        if label != given and (label != planted or len(logits) == 2)
    ]
    return max(rivals) - float(logits[given])


def planted_margin(logits: np.ndarray, planted: int) -> float:
    """How far the best rival lies above the planted label; its given label is a rival too."""
    rivals = [float(logit) for label, logit in enumerate(logits) if label != planted]
    return max(rivals) - float(logits[planted])
