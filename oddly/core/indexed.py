"""Wrap a map-style dataset so that items carry their index and labels can be replaced."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from oddly.errors import InputError

LABEL_KEYS = ("label", "labels", "target", "targets")
LabelKey = str | int | tuple[str, ...] | None
"""Where the label is: a key of a mapping, several keys to try in order, or a place in a tuple."""


class IndexedDataset(Dataset[Any]):
    """Wraps a dataset so that every item carries its index.

    A tuple or list gets the index appended, a mapping gets the key `index`, anything else
    becomes `(item, index)`. `label_key` says where the label is, if not in second place.
    """

    def __init__(self, dataset: Dataset[Any], label_key: LabelKey = None) -> None:
        self.dataset = dataset
        self.label_key = label_key
        self._places: dict[int, int] = {}  # index → place among the planted
        self._num_classes = 0
        # Shared with worker processes: `restore` and other shifts must reach persistent workers,
        # and they report which given labels they replaced.
        self._planted = torch.zeros((), dtype=torch.bool).share_memory_()
        self._shifts = self._replaced = torch.zeros(0)

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        item = self.item(index)
        if isinstance(item, Mapping):
            check_free(item)
            return {**item, "index": index}
        if isinstance(item, tuple | list):
            return (*item, index)
        return (item, index)

    def item(self, index: int) -> Any:
        """The dataset's own item, with the planted label if it has one."""
        return self._plant(self.dataset[index], index)

    def items(self, indices: list[int]) -> list[Any]:
        """The same for several indices at once, which is faster for some datasets."""
        fetch = getattr(self.dataset, "__getitems__", None)
        if fetch is None:
            return [self.item(index) for index in indices]
        return [self._plant(*pair) for pair in zip(fetch(indices), indices, strict=True)]

    def _plant(self, item: Any, index: int) -> Any:
        place = self._places.get(int(index))
        if place is None or not self._planted:
            return item
        key = find_label(item, self.label_key)
        label = self._class_of(item[key])
        self._replaced[place] = label
        planted = (label + int(self._shifts[place])) % self._num_classes
        return _with_entry(item, key, _like(item[key], planted))

    def check_label(self) -> None:
        """Raise if items have no label that can be replaced."""
        item = self.dataset[0]
        key = None
        try:
            key = find_label(item, self.label_key)
            _number(item[key])
        except InputError as error:
            way = "; use counterfactual='wrong_label', which needs none"
            if key is not None and _has_number(item):
                way = ""  # an entry to name: label_key= is enough
            raise InputError(
                f"sentinels need labels that can be replaced, but {error}{way}"
            ) from None
        self._class_of(item[key])

    def plant(self, indices: Tensor, shifts: Tensor, num_classes: int) -> None:
        """Return label + shift (mod K) for `indices` until `restore`; call before loading.

        Later calls may change the shifts of the same indices, in worker processes too.
        """
        places = {index: place for place, index in enumerate(indices.tolist())}
        self._num_classes = num_classes
        if places != self._places:
            self._places = places
            self._shifts = torch.zeros(indices.shape, dtype=torch.int32).share_memory_()
            self._replaced = torch.full(indices.shape, -1, dtype=torch.int32).share_memory_()
        self._shifts.copy_(shifts)
        self._replaced.fill_(-1)
        self._planted.fill_(True)

    def restore(self) -> None:
        """Return the given labels again, in worker processes too."""
        self._planted.fill_(False)

    def check_observed(self, labels: Tensor) -> None:
        """Raise if observed given labels (S,) (-1: unseen) are not those replaced here."""
        seen, replaced = labels >= 0, self._replaced >= 0
        if seen.any() and not replaced.any():
            raise InputError(
                "the planted labels were not used: create the loader after the Denoiser, from the"
                " IndexedDataset that you passed to it"
            )
        if (strange := seen & replaced & (labels != self._replaced)).any():
            raise InputError(
                f"{int(strange.sum())} of {int(seen.sum())} planted labels were observed as other"
                " labels: check that label_key= names the label, and that labels, logits and"
                " indices keep the order of the batch"
            )

    def _class_of(self, label: Any) -> int:
        found = _number(label)
        if not 0 <= found < self._num_classes:
            raise InputError(
                f"label {found} is outside 0..{self._num_classes - 1}: use label_key= to name the"
                " entry that is the label, or correct num_classes"
            )
        return found


def _number(label: Any) -> int:
    number: Any = None
    try:
        number = label.item() if hasattr(label, "item") else label  # also arrays of one element
        found = int(number)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        found = -1
    if found != number:
        # Shortened: it may be an image.
        told = f"of shape {tuple(label.shape)}" if hasattr(label, "shape") else repr(label)[:60]
        raise InputError(
            f"a label must be one class number, got {type(label).__name__} {told}: return"
            " class indices, or use label_key= to name the entry that is the label"
        )
    return found


def _has_number(item: Any) -> bool:
    """Whether an entry of the item could be a class number."""
    for entry in item.values() if isinstance(item, Mapping) else item:
        with suppress(InputError):
            _number(entry)
            return True
    return False


def find_label(item: Any, label_key: LabelKey = None) -> str | int:
    """Where the label of an item or batch is; by default under a usual name or in second place."""
    if isinstance(item, Mapping):
        keys = (label_key,) if isinstance(label_key, str | int) else label_key or LABEL_KEYS
        for key in keys:
            if key in item:
                return key
        raise InputError(f"no label among {sorted(item)}: use label_key= to name it")
    if not isinstance(item, tuple | list):
        raise InputError(f"items must be tuples or mappings with a label, got {type(item)}")
    place = label_key if isinstance(label_key, str | int) else 1
    if isinstance(place, str) or not -len(item) <= place < len(item):
        raise InputError(f"a {type(item).__name__} of {len(item)} has no label at {place!r}")
    return place


def check_free(batch: Mapping[str, Any]) -> None:
    """Refuse to overwrite an entry of the user's."""
    if "index" in batch:
        raise InputError("the batch already has an entry 'index', which oddly adds: rename yours")


def _with_entry(item: Any, key: str | int, value: Any) -> Any:
    """A copy of the item, of its own type, with this one entry replaced."""
    if isinstance(item, MutableMapping):
        changed = copy.copy(item)
        changed[key] = value
        return changed
    if isinstance(item, Mapping):
        return {**item, key: value}
    entries = list(item)
    entries[int(key)] = value
    return item._make(entries) if hasattr(item, "_make") else type(item)(entries)


def _like(label: Any, number: int) -> Any:
    """The number in the label's own type and shape."""
    if isinstance(label, Tensor):
        return torch.full_like(label, number)
    if not hasattr(label, "shape"):
        return type(label)(number)
    # ndarray(number) would be an array of that shape; the sum is int64 in NumPy 1, hence astype.
    return (label * 0 + number).astype(label.dtype)
