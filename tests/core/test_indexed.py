"""Every item carries its index; a label can be replaced, also in worker processes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from oddly.core import IndexedDataset


class Items(Dataset[Any]):
    """Twenty equal items, or whatever is given."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Any:
        return self.item


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (("x", 7), ("x", 7, 3)),
        (["x", 7, "more"], ("x", 7, "more", 3)),
        ({"image": "x", "label": 7}, {"image": "x", "label": 7, "index": 3}),
        ("x", ("x", 3)),
        (5.0, (5.0, 3)),
    ],
)
def test_index_is_added(item: Any, expected: Any) -> None:
    assert IndexedDataset(Items(item))[3] == expected


def test_a_tensor_item_becomes_a_pair() -> None:
    item, index = IndexedDataset(Items(torch.ones(2)))[3]
    assert torch.equal(item, torch.ones(2))
    assert index == 3


def test_the_item_itself_is_left_alone() -> None:
    item = {"image": "x", "label": 7}
    IndexedDataset(Items(item))[3]
    assert item == {"image": "x", "label": 7}


def test_length_is_the_datasets() -> None:
    assert len(IndexedDataset(Items(0))) == 20


def test_batches_of_a_loader() -> None:
    data = IndexedDataset(TensorDataset(torch.arange(10.0), torch.arange(10) % 3))
    inputs, labels, index = next(iter(DataLoader(data, 4, sampler=[9, 2, 5, 0])))
    assert index.tolist() == [9, 2, 5, 0]
    assert inputs.tolist() == [9, 2, 5, 0]
    assert labels.tolist() == [0, 2, 2, 0]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (("x", 7), ("x", 1, 3)),
        (["x", 7, "more"], ("x", 1, "more", 3)),
        ({"image": "x", "label": 7}, {"image": "x", "label": 1, "index": 3}),
        ({"pixels": "x", "labels": 7}, {"pixels": "x", "labels": 1, "index": 3}),
        ({"x": 0, "target": 7}, {"x": 0, "target": 1, "index": 3}),
    ],
)
def test_replaced_label(item: Any, expected: Any) -> None:
    data = IndexedDataset(Items(item))
    data.replace_labels(torch.tensor([3, 8]), torch.tensor([1, 2]))
    assert data[3] == expected
    assert data[4] == IndexedDataset(Items(item))[4]  # not replaced


def test_replaced_tensor_label_keeps_shape_and_type() -> None:
    data = IndexedDataset(Items(("x", torch.tensor([7], dtype=torch.int32))))
    data.replace_labels(torch.tensor([3]), torch.tensor([1]))
    label = data[3][1]
    assert label.tolist() == [1]
    assert label.dtype == torch.int32


def test_a_label_key_of_its_own() -> None:
    item = {"image": "x", "label": 7, "fine": 8}
    data = IndexedDataset(Items(item), label_key="fine")
    data.replace_labels(torch.tensor([3]), torch.tensor([1]))
    assert data[3] == {"image": "x", "label": 7, "fine": 1, "index": 3}


def test_a_later_replacement_takes_the_place_of_an_earlier_one() -> None:
    data = IndexedDataset(Items(("x", 7)))
    data.replace_labels(torch.tensor([3]), torch.tensor([1]))
    data.replace_labels(torch.tensor([4]), torch.tensor([2]))
    assert [data[3][1], data[4][1]] == [7, 2]


def test_restored_labels() -> None:
    data = IndexedDataset(Items(("x", 7)))
    data.restore_labels()  # nothing to do yet
    data.replace_labels(torch.tensor([3]), torch.tensor([1]))
    data.restore_labels()
    assert data[3] == ("x", 7, 3)


def test_an_index_that_is_a_tensor_is_replaced_too() -> None:
    """Samplers over a tensor (SubsetRandomSampler(kept)) yield 0-d tensors."""
    data = IndexedDataset(Items(("x", 7)))
    data.replace_labels(torch.tensor([3]), torch.tensor([1]))
    assert data[torch.tensor(3)][1] == 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        ({"image": "x", "class": 7}, KeyError, "no label among .*pass label_key="),
        (torch.ones(2), TypeError, "carry a label to replace"),
        (("x",), TypeError, "carry a label to replace"),
    ],
)
def test_items_without_a_label(item: Any, error: type[Exception], message: str) -> None:
    data = IndexedDataset(Items(item))
    data.replace_labels(torch.tensor([3]), torch.tensor([1]))
    with pytest.raises(error, match=message):
        data[3]


def labels_of(loader: DataLoader[Any]) -> Tensor:
    return torch.cat([labels for _, labels, _ in loader])


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_see_replaced_and_restored_labels(persistent: bool) -> None:
    """A persistent worker copied the dataset once; only shared memory reaches it."""
    data = IndexedDataset(TensorDataset(torch.zeros(6), torch.zeros(6, dtype=torch.int64)))
    data.replace_labels(torch.tensor([1, 4]), torch.tensor([2, 3]))
    loader = DataLoader(data, 2, num_workers=1, persistent_workers=persistent)
    assert labels_of(loader).tolist() == [0, 2, 0, 0, 3, 0]
    data.restore_labels()
    assert labels_of(loader).tolist() == [0] * 6
