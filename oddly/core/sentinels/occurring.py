"""The classes that occur: a network may have more outputs than the data have classes."""

from __future__ import annotations

import torch
from torch import Tensor

from oddly.core.observed import CHUNK, find_occurring
from oddly.core.sentinels.planting import Scored
from oddly.errors import InputError


class Occurring:
    """The classes of which there are examples, numbered without gaps.

    A class without examples would mislead every estimate: the network soon knows that it never
    occurs, so a random label of that class looks far more wrong than any real mistake.
    """

    def __init__(self, labels: Tensor, num_classes: int) -> None:
        """From given labels (N,); -1 is unknown."""
        self.classes = find_occurring(labels, num_classes)  # (K',) ascending
        self._places = torch.full((num_classes + 1,), -1)  # last: label unknown (-1)
        self._places[self.classes] = torch.arange(len(self.classes))
        self._all = len(self.classes) == num_classes

    def __len__(self) -> int:
        return len(self.classes)

    def renumber(self, scored: Scored) -> Scored:
        """The same examples; those with a label that does not occur get label -1."""
        if self._all:
            return scored
        labels, rivals = torch.empty_like(scored.labels), torch.empty_like(scored.rivals)
        for start in range(0, len(labels), CHUNK):
            part = slice(start, start + CHUNK)
            labels[part] = own = self._places[scored.labels[part].long()]
            other = self._places[scored.rivals[part].long()]
            # A class without examples is hardly ever the rival; then any other may stand for it.
            absent = (other < 0) & (scored.rivals[part] >= 0)
            rivals[part] = torch.where(absent, (own + 1) % len(self), other)
        return Scored(scored.scores, labels, rivals)

    def renumber_planted(self, sentinels: Scored) -> Scored:
        """The sentinels whose planted label occurs, with the new numbers."""
        if self._all:
            return sentinels
        renumbered = self.renumber(sentinels)
        usable = renumbered.labels >= 0
        if 2 * int(usable.sum()) < len(usable):
            raise InputError(
                f"most planted labels are of classes without examples: only {len(self)} of"
                f" {len(self._places) - 1} classes occur; judge after a later epoch, by when others"
                " are planted, or correct num_classes"
            )
        return Scored(*(column[usable] for column in renumbered))

    def original(self, pairs: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        """Pairs of classes in the user's numbers again."""
        return tuple((int(self.classes[one]), int(self.classes[other])) for one, other in pairs)
