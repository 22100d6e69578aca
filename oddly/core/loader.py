"""A loader of yours made to carry indices, planted labels and, after E, only what is kept."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
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
from oddly.core.indexed import IndexedDataset
from oddly.core.sampler import KeepSampler
from oddly.errors import InputError


def denoise(
    loader: DataLoader[Any],
    num_classes: int,
    epochs: int | None = None,
    label_key: str | None = None,
    refill: bool = False,
    seed: int = 0,
    **options: Any,
) -> tuple[DataLoader[Any], Denoiser]:
    """`loader` again, with each batch's index, and the Denoiser that goes with it.

        loader, denoiser = oddly.denoise(loader, num_classes=10, epochs=40)
        for epoch in range(40):
            for inputs, labels, index in loader:
                logits = model(inputs)
                denoiser.observe(index, logits, labels)
                ...                               # your loss, backward, step
            denoiser.end_epoch(model)

    A batch that is a tuple or list gets its indices appended, a mapping the key `index`; your
    `collate_fn` sees what it always saw. After E the new loader yields kept examples alone.
    `refill` keeps an epoch as long as it was, by going through them again. `options` are those of
    `Denoiser`; `label_key` says which entry of a mapping is the label.
    """
    shuffle = _check(loader)
    dataset = IndexedDataset(loader.dataset, label_key)
    sampler = KeepSampler(len(dataset), seed, shuffle, refill=refill)
    denoiser = Denoiser(dataset, num_classes, epochs, seed=seed, sampler=sampler, **options)
    if denoiser.sentinels:
        dataset.check_label()
    return _rebuild(loader, dataset, sampler), denoiser


def _check(loader: DataLoader[Any]) -> bool:
    """Refuse a loader whose order is not ours to replace; says whether it shuffles."""
    if not isinstance(loader, DataLoader):
        raise InputError(f"a torch DataLoader is needed, not {type(loader).__name__}")
    if isinstance(loader.dataset, IterableDataset) or not hasattr(loader.dataset, "__len__"):
        raise InputError("an iterable dataset has no indices: use one with a length and items")
    batches: Any = loader.batch_sampler
    while hasattr(batches, "batch_sampler"):  # accelerate's, one per process
        batches = batches.batch_sampler
    if type(batches) is not BatchSampler:
        raise InputError("the loader needs a batch_size, not batches of its own (batch_sampler)")
    sampler: Any = batches.sampler
    if isinstance(sampler, DistributedSampler):
        return sampler.shuffle
    once = isinstance(sampler, RandomSampler) and not sampler.replacement
    if not (once or isinstance(sampler, SequentialSampler)) or len(sampler) != len(loader.dataset):
        raise InputError(
            f"the loader's {type(sampler).__name__} would be lost, for kept examples are drawn by"
            " another: give it shuffle=True, and leave examples out with torch's Subset"
        )
    return once


def _rebuild(
    loader: DataLoader[Any], dataset: IndexedDataset, sampler: KeepSampler
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
        collate_fn=_CollateWithIndex(loader.collate_fn),
        **{name: getattr(loader, name) for name in names if hasattr(loader, name)},
    )


class _Pairs(Dataset[tuple[Any, int]]):
    """Items beside their indices, so that a `collate_fn` need not know about these."""

    def __init__(self, dataset: IndexedDataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.dataset.item(index), index

    def __getitems__(self, indices: list[int]) -> list[tuple[Any, int]]:
        return list(zip(self.dataset.items(indices), indices, strict=True))


class _CollateWithIndex:
    """A `collate_fn` whose batches carry their indices at the end; a class, for it is pickled."""

    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self.collate = collate

    def __call__(self, pairs: list[tuple[Any, int]]) -> Any:
        batch = self.collate([item for item, _ in pairs])
        index = torch.tensor([index for _, index in pairs])
        if isinstance(batch, MutableMapping):
            batch["index"] = index
            return batch
        if type(batch) in (tuple, list):
            return [*batch, index]
        raise InputError(
            f"batches must be tuples, lists or mappings to carry an index, not {type(batch)}"
        )


def take_index(batch: Any) -> Tensor:
    """Take the indices off a batch again, which then is as your `collate_fn` left it."""
    index: Tensor = batch.pop("index") if isinstance(batch, MutableMapping) else batch.pop()
    return index
