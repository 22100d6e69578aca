"""Any map-style dataset, plus each example's index; also where a label can be replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from oddly.errors import InputError

LABEL_KEYS = ("label", "labels", "target", "targets")


class IndexedDataset(Dataset[Any]):
    """Wraps `dataset` so that every item carries its index.

    A tuple or list gets the index appended, a mapping gets the key `index`, anything else
    becomes `(item, index)`.
    """

    def __init__(self, dataset: Dataset[Any], label_key: str | None = None) -> None:
        self.dataset = dataset
        self.label_key = label_key
        self._shifts: dict[int, int] = {}
        self._num_classes = 0
        # Shared with worker processes, so that restoring reaches those that live on.
        self._planted = torch.zeros((), dtype=torch.bool).share_memory_()
        self._handed_out = torch.zeros((), dtype=torch.bool).share_memory_()

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        item = self.item(index)
        if isinstance(item, Mapping):
            return {**item, "index": index}
        if isinstance(item, tuple | list):
            return (*item, index)
        return (item, index)

    def item(self, index: int) -> Any:
        """The dataset's own item; where a label is planted, with that one."""
        return self._plant(self.dataset[index], index)

    def items(self, indices: list[int]) -> list[Any]:
        """The same for several at once, which some datasets hand out faster."""
        fetch = getattr(self.dataset, "__getitems__", None)
        if fetch is None:
            return [self.item(index) for index in indices]
        return [self._plant(*pair) for pair in zip(fetch(indices), indices, strict=True)]

    def _plant(self, item: Any, index: int) -> Any:
        shift = self._shifts.get(int(index))
        if shift is None or not self._planted:
            return item
        self._handed_out.fill_(True)
        return self._with_shifted_label(item, shift)

    def check_label(self) -> None:
        """Refuse a dataset whose items have no label that could be replaced."""
        try:
            self._with_shifted_label(self.dataset[0], 0)
        except (KeyError, TypeError) as error:
            raise InputError(
                f"sentinels need labels that can be replaced, but {error.args[0]};"
                " counterfactual='wrong_label' does without"
            ) from None

    def plant(self, indices: Tensor, shifts: Tensor, num_classes: int) -> None:
        """Hand out label + shift (mod K) for `indices` until `restore`; call before loading."""
        self._shifts = dict(zip(indices.tolist(), shifts.tolist(), strict=True))
        self._num_classes = num_classes
        self._handed_out.fill_(False)
        self._planted.fill_(True)

    def restore(self) -> None:
        """Hand out the given labels again, in worker processes too."""
        self._planted.fill_(False)

    @property
    def handed_out(self) -> bool:
        """Whether a planted label has come out, here or in a worker process."""
        return bool(self._handed_out)

    def _with_shifted_label(self, item: Any, shift: int) -> Any:
        place = find_label(item, self.label_key)
        moved = self._shift(item[place], shift)
        return {**item, place: moved} if isinstance(place, str) else (item[0], moved, *item[2:])

    def _shift(self, label: Any, shift: int) -> Any:
        """The label moved on, in its own type and shape; as an int, for bytes would overflow."""
        try:
            number = label.item() if hasattr(label, "item") else label  # of an array of one, too
            moved = (int(number) + shift) % self._num_classes
        except (TypeError, ValueError, RuntimeError):
            raise InputError(
                f"a label must be one class number, not {type(label).__name__} {label!r}"
            ) from None
        if isinstance(label, Tensor):
            return torch.full_like(label, moved)
        # An array's type would take the number for a shape.
        return label * 0 + moved if hasattr(label, "shape") else type(label)(moved)


def find_label(item: Any, label_key: str | None = None) -> str | int:
    """Where the label of an item, or of a batch, lies: a mapping's key, else the second place."""
    if isinstance(item, Mapping):
        key = label_key or next((k for k in LABEL_KEYS if k in item), None)
        if key is None or key not in item:
            raise KeyError(f"no label among {sorted(item)}; pass label_key=")
        return key
    if isinstance(item, tuple | list) and len(item) >= 2:
        return 1
    raise TypeError("only (input, label, …) tuples and mappings carry a label to plant")
