"""What loss a wrong label would have, read off the real logits: any network, no head needed."""

from __future__ import annotations

import torch
from torch import Tensor

from oddly.core.counterfactual import plain_losses
from oddly.core.sentinels import Relabelled

MOST = 65_536  # examples that are asked


class WrongLabels(Relabelled):
    """A random few, each with a fixed label that is neither given nor predicted.

    Nothing is trained on these labels, so memorisation does not show in them: the losses of one
    epoch can be compared, their averages over epochs not.
    """

    def __init__(self, num_examples: int, num_classes: int, seed: int) -> None:
        super().__init__(num_examples, min(num_examples, MOST), num_classes, "last", seed)

    def observe(self, index: Tensor, logits: Tensor, labels: Tensor) -> None:
        """Record what the losses would have been."""
        place, chosen, shift = self.find(index.to(logits.device, non_blocking=True))
        wrong = (labels + shift) % self.num_classes
        if self.num_classes > 2:  # of two classes, one is given and the other wrong
            after = (wrong + 1) % self.num_classes
            after = torch.where(after == labels, (after + 1) % self.num_classes, after)
            wrong = torch.where(wrong == logits.argmax(1), after, wrong)
        self.ledger.record(place, plain_losses(logits, wrong), where=chosen)

    def losses(self) -> Tensor:
        """Of those that were asked about so far."""
        asked = self.ledger.values
        return asked[~asked.isnan()]
