"""One picture under different labels: which of its copies are wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Votes:
    """What speaks for the labels of one picture."""

    borne: Counter[int] = field(default_factory=Counter)
    """Copies by label."""
    kept: set[int] = field(default_factory=set)
    decided: set[int] = field(default_factory=set)

    def winner(self) -> int | None:
        """The label that a person decided; else the most frequent one; else the only one kept.

        None where that one looks wrong in every copy, and another does not: either may be right.
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
    """bool (N,): copies whose label loses against another copy's, by what a verdict keeps.

    `pictures` int64 (N,) numbers those that occur under different labels; -1 is none of them. Where
    no label wins nobody knows which is right, and all lose. What a person decided never does.
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
