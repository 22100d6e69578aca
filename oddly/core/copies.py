"""Decide which copies are wrong if the same picture occurs with different labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Votes:
    """The evidence for each label of one picture."""

    borne: Counter[int] = field(default_factory=Counter)
    """Number of copies with each label."""
    kept: set[int] = field(default_factory=set)
    """Labels with a copy that the verdict keeps."""
    decided: set[int] = field(default_factory=set)
    """Labels that a person confirmed."""

    def winner(self) -> int | None:
        """The label that a person confirmed; else the most frequent one; else the only one kept.

        None if the most frequent label looks wrong in every copy but another one does not: then
        either may be right.
        """
        most = max(self.borne.values())
        frequent = {label for label, copies in self.borne.items() if copies == most}
        if len(self.decided) != 1 and self.kept and not frequent & self.kept:
            return None
        for labels in (self.decided, frequent, self.kept):
            if len(labels) == 1:
                return next(iter(labels))
        return None


def outvoted(pictures: Tensor, labels: Tensor, keep: Tensor, decided: Tensor | None) -> Tensor:
    """bool (N,): copies whose label loses against the label of another copy.

    `pictures` (N,) int64 is the number of the picture if it occurs with different labels, else -1.
    `keep` is the verdict's. If no label wins, all lose, since nobody knows which is right. A label
    that a person confirmed never loses.
    """
    places = (pictures >= 0).nonzero().flatten()
    sure = torch.zeros_like(keep) if decided is None else decided
    columns = (each[places].tolist() for each in (pictures, labels, keep, sure))
    votes: dict[int, Votes] = defaultdict(Votes)
    copies = list(zip(*columns, strict=True))
    for picture, label, kept, vouched in copies:
        votes[picture].borne[label] += 1
        votes[picture].kept |= {label} if kept else set()
        votes[picture].decided |= {label} if vouched else set()
    winners = {picture: each.winner() for picture, each in votes.items()}
    lost = torch.zeros(len(pictures), dtype=torch.bool)
    lost[places] = torch.tensor([winners[p] != label for p, label, *_ in copies], dtype=torch.bool)
    return lost & ~sure.to(lost.device)
