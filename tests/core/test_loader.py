"""A loader of one's own made to carry indices, planted labels and kept examples alone."""

from __future__ import annotations

from collections import UserDict, namedtuple
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import oddly
from oddly.core import Denoiser, IndexedDataset
from oddly.errors import InputError

N, K = 400, 4


def dataset(size: int = N) -> TensorDataset:
    """Each input says which example it is; every label is 0."""
    return TensorDataset(torch.arange(float(size)), torch.zeros(size, dtype=torch.int64))


def denoise(loader: Any, **options: Any) -> tuple[DataLoader[Any], Denoiser]:
    return oddly.denoise(loader, num_classes=K, **{"epochs": 5, **options})


def test_batches_are_as_before_with_their_indices_at_the_end() -> None:
    loader, _ = denoise(DataLoader(dataset(), 32, shuffle=True))
    seen = []
    for inputs, labels, index in loader:
        assert torch.equal(inputs, index.float())
        assert labels.shape == index.shape
        seen += index.tolist()
    assert sorted(seen) == list(range(N))
    assert seen != sorted(seen)


def test_a_loader_that_does_not_shuffle_stays_in_order() -> None:
    loader, _ = denoise(DataLoader(dataset(), 32))
    assert torch.cat([index for _, _, index in loader]).tolist() == list(range(N))


def test_labels_are_planted_until_the_verdict_and_only_kept_examples_come_after_it() -> None:
    loader, denoiser = denoise(DataLoader(dataset(), 32, shuffle=True), prune_after=1)
    assert denoiser.sentinels is not None
    planted = torch.cat([index[labels != 0] for _, labels, index in loader])
    assert torch.equal(planted.sort().values, denoiser.sentinels.indices)
    for inputs, labels, index in loader:
        fits = inputs >= 40  # the first forty look wrong
        logits = torch.where(fits, 5.0, -5.0)[:, None] * F.one_hot(torch.zeros_like(labels), K)
        denoiser.observe(index, logits, labels)
    verdict = denoiser.end_epoch(nn.Identity())
    assert verdict is not None
    assert set(range(40)) <= set(verdict.removed.tolist())
    after = [(labels, index) for _, labels, index in loader]
    assert all((labels == 0).all() for labels, _ in after)
    kept = torch.cat([index for _, index in after])
    assert torch.equal(kept.sort().values, verdict.keep.nonzero().flatten())
    assert len(loader) == -(-len(kept) // 32)


def test_refilled_epochs_keep_their_length() -> None:
    loader, denoiser = denoise(DataLoader(dataset(), 32, shuffle=True, drop_last=True), refill=True)
    assert len(loader) == 12
    denoiser.sampler.set_keep(torch.arange(N) < 150)
    index = torch.cat([index for _, _, index in loader])
    assert len(loader) == 12
    assert len(index) == 12 * 32
    counts = index.bincount(minlength=N)
    assert set(counts[:150].tolist()) <= {2, 3}
    assert not counts[150:].any()


def test_settings_of_the_loader_are_kept() -> None:
    generator = torch.Generator()
    options: dict[str, Any] = {
        "num_workers": 1,
        "persistent_workers": True,
        "prefetch_factor": 3,
        "timeout": 30.0,
        "worker_init_fn": print,
        "generator": generator,
        "multiprocessing_context": "spawn",
        "drop_last": True,
    }
    loader, _ = denoise(DataLoader(dataset(), 16, shuffle=True, **options))
    for name, value in options.items():
        if name != "multiprocessing_context":
            assert getattr(loader, name) == value, name
    assert loader.multiprocessing_context.get_start_method() == "spawn"
    assert loader.batch_size == 16


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_that_live_on_go_back_to_the_given_labels(context: str) -> None:
    source = DataLoader(
        dataset(300), 50, num_workers=1, persistent_workers=True, multiprocessing_context=context
    )
    loader, denoiser = denoise(source)
    before = torch.cat([labels for _, labels, _ in loader])
    assert denoiser.sentinels is not None
    assert int((before != 0).sum()) == len(denoiser.sentinels.indices) == 30
    assert denoiser._dataset is not None
    denoiser._dataset.restore()
    assert not torch.cat([labels for _, labels, _ in loader]).any()


def test_your_collate_function_never_meets_an_index() -> None:
    def collate(items: list[Any]) -> dict[str, Any]:
        inputs, labels = zip(*items, strict=True)
        return {"x": torch.stack(inputs), "labels": torch.stack(labels)}

    loader, _ = denoise(DataLoader(dataset(), 32, collate_fn=collate))
    batch = next(iter(loader))
    assert sorted(batch) == ["index", "labels", "x"]
    assert batch["index"].tolist() == list(range(32))


def test_a_mapping_of_another_kind_stays_of_its_kind() -> None:
    loader, _ = denoise(DataLoader(dataset(), 32, collate_fn=lambda items: UserDict(n=len(items))))
    batch = next(iter(loader))
    assert type(batch) is UserDict
    assert (batch["n"], len(batch["index"])) == (32, 32)


def test_a_batch_that_cannot_carry_an_index() -> None:
    pair = namedtuple("pair", "inputs labels")  # noqa: PYI024
    for collate in (lambda items: torch.zeros(len(items)), lambda items: pair(1, 2)):
        loader, _ = denoise(DataLoader(dataset(), 32, collate_fn=collate))
        with pytest.raises(InputError, match="batches must be tuples, lists or mappings"):
            next(iter(loader))


def test_a_distributed_sampler_gives_way_to_one_that_also_knows_its_rank() -> None:
    data = dataset()
    sampler = DistributedSampler(data, num_replicas=1, rank=0, shuffle=False)
    loader, denoiser = denoise(DataLoader(data, 32, sampler=sampler))
    assert not denoiser.sampler.shuffle
    assert len(torch.cat([index for _, _, index in loader])) == N


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(N))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dataset(), "expected a torch DataLoader, got TensorDataset"),
        (
            lambda: DataLoader(IndexedDataset(dataset()), 32),
            "make the loader from your own dataset",
        ),
        (lambda: Twice(dataset(), 32), "Twice's own __iter__ would be lost"),
        (lambda: DataLoader(dataset(), 401, drop_last=True), "not one full batch of 401"),
        (lambda: DataLoader(Stream(), 32), "an iterable dataset has no indices"),
        (lambda: DataLoader(dataset(), batch_size=None), "batch_size=None, which makes no batches"),
        (
            lambda: DataLoader(
                dataset(), batch_sampler=Halves(SequentialSampler(range(N)), 2, False)
            ),
            "the loader needs a batch_size",
        ),
        (
            lambda: DataLoader(dataset(), 32, sampler=WeightedRandomSampler([1.0] * N, N)),
            "the loader's WeightedRandomSampler would be lost",
        ),
        (
            lambda: DataLoader(dataset(), 32, sampler=RandomSampler(range(N), num_samples=50)),
            "the loader's RandomSampler would be lost",
        ),
        (
            lambda: DataLoader(dataset(), 32, sampler=RandomSampler(range(N), replacement=True)),
            "the loader's RandomSampler would be lost",
        ),
    ],
)
def test_loaders_that_cannot_be_followed(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        denoise(make())


class Twice(DataLoader[Any]):
    """Somebody's own way to hand them out."""

    def __iter__(self) -> Any:
        yield from super().__iter__()
        yield from super().__iter__()


class Halves(BatchSampler):
    """Somebody's own way to make batches."""


class Unlabelled(Dataset[Any]):
    """Labels are made later, where batches are."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        return self.item


@pytest.mark.parametrize("item", [torch.zeros(2), (torch.zeros(2),), {"image": 0, "class": 1}])
def test_labels_that_cannot_be_replaced(item: Any) -> None:
    loader = DataLoader(Unlabelled(item), 32, collate_fn=lambda items: [len(items)])
    with pytest.raises(InputError, match="labels that can be replaced, but .*use .*'wrong_label'"):
        denoise(loader)
    loader, denoiser = denoise(loader, counterfactual="wrong_label")
    assert denoiser.sentinels is None
    assert next(iter(loader))[1].tolist() == list(range(32))


def test_a_label_under_another_name() -> None:
    loader, denoiser = denoise(
        DataLoader(Unlabelled({"image": 0.0, "class": 1}), 32), label_key="class"
    )
    labels = torch.cat([batch["class"] for batch in loader])
    assert denoiser.sentinels is not None
    assert int((labels != 1).sum()) == len(denoiser.sentinels.indices)
    with pytest.raises(InputError, match="no label among"):
        denoise(DataLoader(Unlabelled({"image": 0.0, "class": 1}), 32), label_key="klass")


class Batched(Dataset[Any]):
    """Hands out several items at once, and can no other way."""

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        assert index == 0  # the one that is looked at beforehand
        return {"inputs": 0, "label": 0}

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [{"inputs": index, "label": 0} for index in indices]


def test_a_dataset_that_hands_out_several_at_once_is_asked_for_them() -> None:
    loader, denoiser = denoise(DataLoader(Batched(), 32, shuffle=True))
    batches = list(loader)
    assert all(torch.equal(batch["inputs"], batch["index"]) for batch in batches)
    planted = torch.cat([batch["index"][batch["label"] != 0] for batch in batches])
    assert denoiser.sentinels is not None
    assert torch.equal(planted.sort().values, denoiser.sentinels.indices)


def test_an_entry_of_a_batch_called_index_is_not_written_over() -> None:
    loader, _ = denoise(DataLoader(Unlabelled({"index": 12, "label": 1}), 32))
    with pytest.raises(InputError, match="already has an entry 'index'"):
        next(iter(loader))


def beside(batch: Any, index: Tensor) -> Any:
    return {"batch": batch, "number": index}


def test_indices_can_be_carried_in_another_way() -> None:
    loader, _ = denoise(DataLoader(dataset(), 32, num_workers=1), carry=beside)
    batch = next(iter(loader))
    assert torch.equal(batch["batch"][0], batch["number"].float())


def test_an_id_in_the_second_place_is_not_taken_for_the_label() -> None:
    triples = TensorDataset(torch.zeros(N), torch.arange(N), torch.arange(N) % K)
    loader, _ = denoise(DataLoader(triples, 32, shuffle=True))
    with pytest.raises(InputError, match=r"label \d+ is outside 0..3: use label_key="):
        list(loader)
    loader, denoiser = denoise(DataLoader(triples, 32), label_key=2)
    _, ids, labels, index = (torch.cat(column) for column in zip(*loader, strict=True))
    assert torch.equal(ids, index)
    assert denoiser.sentinels is not None
    assert torch.equal(index[labels != ids % K], denoiser.sentinels.indices)


def test_a_second_place_that_looks_like_a_label_is_found_out() -> None:
    """A number of the batch's own, within the classes: the labels observed are never planted."""
    triples = TensorDataset(torch.zeros(N), torch.zeros(N).long(), torch.arange(N) % K)
    loader, denoiser = denoise(DataLoader(triples, 32, shuffle=True))
    for _, _, labels, index in loader:
        denoiser.observe(index, torch.zeros(len(index), K), labels)
    with pytest.raises(
        InputError, match="planted labels were observed as other labels: check that label_key="
    ):
        denoiser.end_epoch(nn.Identity())
