"""`denoise`: a user's loader, with indices, planted labels and, after E, only kept examples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, MutableMapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)

from oddly.core.denoiser import Denoiser
from oddly.core.indexed import IndexedDataset, LabelKey, check_free
from oddly.core.sampler import KeepSampler
from oddly.errors import InputError, unknown_name


def append_index(batch: Any, index: Tensor) -> Any:
    """The batch with its indices appended, or under the key `index`."""
    if isinstance(batch, MutableMapping):
        check_free(batch)
        batch["index"] = index
        return batch
    if type(batch) in (tuple, list):
        return [*batch, index]
    raise InputError(
        "batches must be tuples, lists or mappings to carry an index, not"
        f" {type(batch).__name__}: pass carry=, a function of batch and index that returns the new"
        " batch"
    )


def denoise(
    loader: DataLoader[Any],
    num_classes: int,
    epochs: int | None = None,
    label_key: LabelKey = None,
    refill: bool = False,
    seed: int = 0,
    carry: Callable[[Any, Tensor], Any] = append_index,
    **options: Any,
) -> tuple[DataLoader[Any], Denoiser]:
    """Return a loader whose batches carry their indices, and the Denoiser that goes with it.

        loader, denoiser = oddly.denoise(loader, num_classes=10, epochs=40)
        for epoch in range(40):
            for inputs, labels, index in loader:
                logits = model(inputs)
                denoiser.observe(index, logits, labels)
                ...                               # your loss, backward, step
            denoiser.end_epoch(model)

    A batch that is a tuple or list gets its indices appended, a mapping gets the key `index`;
    `carry(batch, index)` can do something else. Your `collate_fn` sees what it always saw.
    After E the new loader yields only kept examples; `refill` keeps epochs as long as before by
    repeating some. The label is an item's second entry, or the one called label, labels, target
    or targets; otherwise pass its place or name as `label_key`. `options` go to `Denoiser`.
    """
    check_options(options)
    order = _check(loader)
    dataset = IndexedDataset(loader.dataset, label_key)
    sampler = KeepSampler(len(dataset), seed, refill=refill, **order)
    denoiser = Denoiser(dataset, num_classes, epochs, seed=seed, sampler=sampler, **options)
    if denoiser.sentinels:
        dataset.check_label()
    rebuilt = _rebuild(loader, dataset, sampler, carry)
    if not len(rebuilt):
        raise InputError(f"drop_last drops everything: not one full batch of {rebuilt.batch_size}")
    return rebuilt, denoiser


def check_options(options: Iterable[str], taken: Container[str] = ()) -> None:
    """Refuse options that neither `denoise` nor `Denoiser` has, or that the caller has `taken`."""
    known = {*inspect.signature(denoise).parameters, *inspect.signature(Denoiser).parameters}
    known -= {"loader", "examples", "sampler", "options"}
    known = {name for name in known if name not in taken}
    for name in options:
        if name not in known:
            raise unknown_name("option", name, known)


def _check(loader: DataLoader[Any]) -> dict[str, Any]:
    """The loader's order as options for KeepSampler; refuse a loader whose order would be lost."""
    if not isinstance(loader, DataLoader):
        raise InputError(f"expected a torch DataLoader, got {type(loader).__name__}")
    if isinstance(loader.dataset, IterableDataset) or not hasattr(loader.dataset, "__len__"):
        raise InputError("an iterable dataset has no indices: use a map-style dataset")
    if isinstance(loader.dataset, _Pairs):  # a notebook cell that was run twice
        raise InputError(
            "this loader was already returned by oddly.denoise: make a new one from your dataset"
        )
    if isinstance(loader.dataset, IndexedDataset):
        raise InputError("oddly.denoise adds the indices: make the loader from your own dataset")
    kind: Any = type(loader)
    if kind.__iter__ is not DataLoader.__iter__ and not kind.__module__.startswith("accelerate."):
        raise InputError(f"{kind.__name__}'s own __iter__ would be lost: use torch's DataLoader")
    batches: Any = loader.batch_sampler
    if batches is None:
        raise InputError("the loader has batch_size=None, which makes no batches: give it a number")
    while hasattr(batches, "batch_sampler"):  # accelerate wraps it, once per process
        batches = batches.batch_sampler
    if type(batches) is not BatchSampler:
        raise InputError("the loader needs a batch_size instead of a batch_sampler")
    sampler: Any = batches.sampler
    order = {"batch_size": batches.batch_size, "drop_last": batches.drop_last}
    if isinstance(sampler, DistributedSampler):
        order |= {"rank": sampler.rank, "world_size": sampler.num_replicas}
        return {**order, "shuffle": sampler.shuffle}
    once = isinstance(sampler, RandomSampler) and not sampler.replacement
    if not (once or isinstance(sampler, SequentialSampler)) or len(sampler) != len(loader.dataset):
        raise InputError(
            f"the loader's {type(sampler).__name__} would be lost: oddly.denoise uses its own;"
            " use shuffle=True instead, and torch's Subset to leave examples out"
        )
    return {**order, "shuffle": once}


def _rebuild(
    loader: DataLoader[Any],
    dataset: IndexedDataset,
    sampler: KeepSampler,
    carry: Callable[[Any, Tensor], Any],
) -> DataLoader[Any]:
    names = (
        *("num_workers", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context"),
        *("generator", "prefetch_factor", "persistent_workers", "in_order"),
    )
    batches: Any = loader.batch_sampler
    return DataLoader(
        _Pairs(dataset),
        batch_size=batches.batch_size,
        drop_last=batches.drop_last,
        sampler=sampler,
        collate_fn=_CollateWithIndex(loader.collate_fn, carry),
        **{name: getattr(loader, name) for name in names if hasattr(loader, name)},
    )


class _Pairs(Dataset[tuple[Any, int]]):
    """Pairs of item and index, so that the user's `collate_fn` need not know about indices."""

    def __init__(self, dataset: IndexedDataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.dataset.item(index), index

    def __getitems__(self, indices: list[int]) -> list[tuple[Any, int]]:
        return list(zip(self.dataset.items(indices), indices, strict=True))


class _CollateWithIndex:
    """A `collate_fn` that adds the indices; a class because workers must be able to pickle it."""

    def __init__(
        self, collate: Callable[[list[Any]], Any], carry: Callable[[Any, Tensor], Any]
    ) -> None:
        self.collate, self.carry = collate, carry

    def __call__(self, pairs: list[tuple[Any, int]]) -> Any:
        batch = self.collate([item for item, _ in pairs])
        return self.carry(batch, torch.tensor([index for _, index in pairs]))
