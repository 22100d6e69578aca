"""Any map-style dataset, plus each example's index; also where a label can be replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

LABEL_KEYS = ("label", "labels", "target", "targets")


class IndexedDataset(Dataset[Any]):
    """Wraps `dataset` so that every item carries its index.

    A tuple or list gets the index appended, a mapping gets the key `index`, anything else
    becomes `(item, index)`.
    """

    def __init__(self, dataset: Dataset[Any], label_key: str | None = None) -> None:
        self.dataset = dataset
        self.label_key = label_key
        self._slots: dict[int, int] = {}
        self._replaced = torch.empty(0, dtype=torch.int64)

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        item = self.dataset[index]
        slot = self._slots.get(int(index))
        if slot is not None and (label := int(self._replaced[slot])) >= 0:
            item = self._with_label(item, label)
        if isinstance(item, Mapping):
            return {**item, "index": index}
        if isinstance(item, tuple | list):
            return (*item, index)
        return (item, index)

    def replace_labels(self, indices: Tensor, labels: Tensor) -> None:
        """Hand out `labels` for `indices` from now on, in place of any earlier replacement.

        The labels lie in shared memory: `restore_labels` reaches worker processes that live on.
        """
        self._slots = {int(index): slot for slot, index in enumerate(indices)}
        self._replaced = labels.to("cpu", torch.int64).clone().share_memory_()

    def restore_labels(self) -> None:
        """Hand out the given labels again."""
        self._replaced.fill_(-1)

    def _with_label(self, item: Any, label: int) -> Any:
        if isinstance(item, Mapping):
            key = self.label_key or next((k for k in LABEL_KEYS if k in item), None)
            if key is None:
                raise KeyError(f"no label among {sorted(item)}; pass label_key=")
            return {**item, key: _like(item[key], label)}
        if isinstance(item, tuple | list) and len(item) >= 2:
            return (item[0], _like(item[1], label), *item[2:])
        raise TypeError("only (input, label, …) tuples and mappings carry a label to replace")


def _like(old: Any, label: int) -> Any:
    """The new label as the dataset itself would have given it."""
    return torch.full_like(old, label) if isinstance(old, Tensor) else label
