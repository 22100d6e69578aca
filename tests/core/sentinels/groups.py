"""Scored examples by the group, for what counts pairs of label and rival."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from oddly.core.sentinels.planting import Scored

Group = tuple[int, int, int, float]
"""How many examples, of which label, with which rival and score."""


def scored(groups: Iterable[Group]) -> Scored:
    counts, *columns = zip(*groups, strict=True)
    labels, rivals, scores = (
        torch.tensor(column).repeat_interleave(torch.tensor(counts)) for column in columns
    )
    return Scored(scores.float(), labels, rivals)
