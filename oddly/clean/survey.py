"""Survey a dataset before decoding anything: number, size and balance of its images."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from oddly.data.base import LabelledData
from oddly.data.source import ImageSource, short_side
from oddly.errors import first_few


@dataclass(frozen=True)
class Survey:
    """What the settings are chosen from."""

    images: int
    classes: int
    smallest_class: int
    largest_class: int
    short_side: int | None
    """The median in pixels; None if no header could be read."""

    @property
    def imbalance(self) -> float:
        """How many times larger the largest class is than the smallest."""
        return self.largest_class / max(1, self.smallest_class)


def survey(data: LabelledData) -> Survey:
    """Count labels, read some headers."""
    counts = torch.bincount(data.train.labels, minlength=len(data.class_names))
    counts = counts[counts > 0]
    return Survey(
        images=len(data.train),
        classes=len(counts),
        smallest_class=int(counts.min()),
        largest_class=int(counts.max()),
        short_side=_short_side(data),
    )


def _short_side(data: LabelledData) -> int | None:
    images = data.train.images
    assert isinstance(images, ImageSource)
    return short_side(images)


def find_lookalikes(class_names: Sequence[str]) -> list[list[str]]:
    """Classes whose names differ only in case or spaces, so probably the same class."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in class_names:
        groups["".join(name.casefold().split())].append(name)
    return [names for names in groups.values() if len(names) > 1]


def about_lookalikes(class_names: Sequence[str]) -> list[str]:
    """A warning about such classes, if there are any."""
    groups = [" / ".join(f"'{name}'" for name in names) for names in find_lookalikes(class_names)]
    if not groups:
        return []
    return [f"classes that differ only in case or spaces, kept separate: {first_few(groups)}"]
