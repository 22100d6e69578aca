"""What loss a wrong label would have, from the network's own logits; works with any network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from oddly.core.counterfactual import plain_losses
from oddly.core.observed import find_occurring
from oddly.core.sentinels.planting import Relabelled

MOST = 65_536  # examples used


class WrongLabels(Relabelled):
    """A few random examples, each with a fixed label that is neither given nor predicted.

    The network does not train on these labels, so it cannot memorise them. Their losses can be
    compared with those of given labels within one epoch, but averages over epochs cannot.
    """

    def __init__(self, num_examples: int, num_classes: int, seed: int) -> None:
        super().__init__(num_examples, min(num_examples, MOST), num_classes, "last", seed)
        self._following = torch.arange(1, num_classes + 1) % num_classes  # the class after each

    def keep_to_classes(self, given: Tensor) -> bool:
        classes = find_occurring(given, self.num_classes)
        self._following[classes] = classes.roll(-1)
        return super().keep_to_classes(given)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "following": self._following}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._following = state.get("following", self._following).cpu().clone()  # or an older one

    def observe(self, index: Tensor, logits: Tensor, labels: Tensor) -> None:
        """Record the losses that these labels would have."""
        place, chosen, shift = self.find(index.to(logits.device, non_blocking=True))
        wrong = (labels + shift) % self.num_classes
        following = self._following.to(labels.device)
        after = following[wrong]  # of two classes, one is given and the other wrong: it stays
        after = torch.where(after == labels, following[after], after)
        wrong = torch.where(wrong == logits.argmax(1), after, wrong)
        self.ledger.record(place, plain_losses(logits, wrong), where=chosen)

    def losses(self) -> Tensor:
        """The losses recorded so far."""
        values = self.ledger.values
        return values[~values.isnan()]
