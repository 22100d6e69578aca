"""What was last observed of each example besides its score: given label, loss and rival."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from oddly.core.ranks import count_ranks, merge_latest, merge_mean
from oddly.errors import InputError


class Observed:
    """Columns of N values, by name; each is on the device of the values last written to it.

    Given labels are needed to see whether a verdict would empty a class. Losses and rivals are
    stored only if scores are margins; otherwise the scores in the ledger are the losses.
    """

    def __init__(self, num_examples: int, num_classes: int, margins: bool) -> None:
        dtype = torch.int16 if num_classes < 2**15 else torch.int32
        size = num_examples + 1  # one spare slot for invalid indices
        self.num_classes = num_classes
        self._columns = {
            "labels": torch.full((size,), -1, dtype=dtype),
            "losses": torch.full((size if margins else 0,), torch.nan),
            "rivals": torch.full((size if margins else 0,), -1, dtype=dtype),
        }

    def __getitem__(self, name: str) -> Tensor:
        return self._columns[name][:-1]

    def write(self, slots: Tensor, **columns: Tensor) -> None:
        """Store values (B,) at `slots` (B,), which `LossLedger.record` returned."""
        for name, values in columns.items():
            column = self._columns[name].to(values.device)
            self._columns[name] = column.scatter_(0, slots, values.to(column.dtype))

    def share(self, current: Tensor) -> None:
        """Share losses and rivals between ranks; this one has seen what is not NaN in `current`."""
        if count_ranks() == 1:
            return
        seen = ~current.isnan()
        merge_latest(self["rivals"], seen)
        fresh = torch.where(seen, self["losses"], torch.nan)
        merge_mean(fresh)
        self["losses"].copy_(torch.where(fresh.isnan(), self["losses"], fresh))

    def state_dict(self) -> dict[str, Any]:
        return {"classes": self.num_classes, **self._columns}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the columns from a state that may contain other entries too."""
        classes = state.get("classes", self.num_classes)  # older checkpoints do not store it
        if classes != self.num_classes:
            raise InputError(f"the saved run has {classes} classes, this one {self.num_classes}")
        self._columns = {name: state[name].clone() for name in self._columns}
