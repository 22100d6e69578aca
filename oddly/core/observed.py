"""What was last observed of each example besides its score: given label, loss and rival."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from oddly.core.ranks import count_ranks, merge_latest, merge_mean
from oddly.errors import InputError

COMPARED = 64  # labels after a restore
CHUNK = 2**20  # labels looked at at a time: usually all classes occur among the first


class Observed:
    """Columns of N values, by name; each is on the device of the values last written to it.

    Given labels are needed to see whether a verdict would empty a class. Losses and rivals are
    stored only if scores are margins; otherwise the scores in the ledger are the losses.
    """

    def __init__(self, num_examples: int, num_classes: int, margins: bool) -> None:
        dtype = torch.int16 if num_classes < 2**15 else torch.int32
        size = num_examples + 1  # one spare slot for invalid indices
        self.num_classes = num_classes
        self._to_compare = 0  # examples whose labels are still to be compared with restored ones
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

    def compare(self, index: Tensor, labels: Tensor) -> None:
        """After a restore, raise if these given labels (B,) are not those seen before it."""
        if self._to_compare <= 0 or labels.shape != index.shape or labels.is_floating_point():
            return
        before = self["labels"]
        before = before[index.to(before.device).long().clamp(0, len(before) - 1)].cpu()
        known = before >= 0
        self._to_compare -= int(known.count_nonzero())
        if other := int((known & (before != labels.cpu())).sum()):
            raise InputError(
                f"{other} of {int(known.sum())} labels are not those of the saved run: go on with"
                " the same examples, labels and order (is a split or shuffle of them not seeded?)"
            )

    def given(self) -> Tensor:
        """The given labels (N,) that any rank has observed; -1: unknown."""
        merge_latest(self["labels"], self["labels"] >= 0)
        return self["labels"]

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
        self._to_compare = COMPARED


def find_occurring(labels: Tensor, num_classes: int) -> Tensor:
    """The classes among labels (N,), ascending; all if fewer than two occur."""
    seen = torch.zeros(num_classes + 1, dtype=torch.bool)  # last: label unknown (-1)
    for part in labels.split(CHUNK):
        seen[part.cpu().long()] = True
        if bool(seen[:-1].all()):
            break
    occurring = seen[:-1].nonzero().flatten()
    return occurring if len(occurring) > 1 else torch.arange(num_classes)
