"""Every item carries its index; a label can be shifted for a while, also in worker processes."""

from __future__ import annotations

import math
from collections import OrderedDict, UserDict
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from oddly.core import IndexedDataset
from oddly.core.indexed import find_label
from oddly.errors import InputError


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
def test_planted_label(item: Any, expected: Any) -> None:
    data = IndexedDataset(Items(item))
    data.plant(torch.tensor([3, 8]), torch.tensor([3, 2]), num_classes=9)
    assert data[3] == expected
    assert data[4] == IndexedDataset(Items(item))[4]  # not planted


def test_planted_tensor_label_keeps_shape_and_type() -> None:
    data = IndexedDataset(Items(("x", torch.tensor([7], dtype=torch.int32))))
    data.plant(torch.tensor([3]), torch.tensor([3]), num_classes=9)
    label = data[3][1]
    assert label.tolist() == [1]
    assert label.dtype == torch.int32


@pytest.mark.parametrize("label", [np.array(7), np.array([7], dtype=np.uint8)])
def test_planted_array_label_keeps_its_type(label: Any) -> None:
    """Some datasets hand out arrays of one; np.ndarray(1) would be an array of rubbish."""
    data = IndexedDataset(Items(("x", label)))
    data.plant(torch.tensor([3]), torch.tensor([3]), num_classes=9)
    planted = data[3][1]
    assert planted.tolist() == (label * 0 + 1).tolist()
    assert (planted.shape, planted.dtype) == (label.shape, label.dtype)
    assert label.item() == 7


def test_a_label_key_of_its_own() -> None:
    item = {"image": "x", "label": 7, "fine": 7}
    data = IndexedDataset(Items(item), label_key="fine")
    data.plant(torch.tensor([3]), torch.tensor([3]), num_classes=9)
    assert data[3] == {"image": "x", "label": 7, "fine": 1, "index": 3}


def test_a_later_planting_takes_the_place_of_an_earlier_one() -> None:
    data = IndexedDataset(Items(("x", 7)))
    data.plant(torch.tensor([3]), torch.tensor([3]), num_classes=9)
    data.plant(torch.tensor([4]), torch.tensor([4]), num_classes=9)
    assert [data[3][1], data[4][1]] == [7, 2]


def test_restored_labels() -> None:
    data = IndexedDataset(Items(("x", 7)))
    data.restore()  # nothing to do yet
    data.plant(torch.tensor([3]), torch.tensor([3]), num_classes=9)
    data.restore()
    assert data[3] == ("x", 7, 3)


def test_an_index_that_is_a_tensor_is_planted_too() -> None:
    """Samplers over a tensor (SubsetRandomSampler(kept)) yield 0-d tensors."""
    data = IndexedDataset(Items(("x", 7)))
    data.plant(torch.tensor([3]), torch.tensor([3]), num_classes=9)
    assert data[torch.tensor(3)][1] == 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("item", "key", "message"),
    [
        ({"image": "x", "class": 7}, None, "no label among .*use label_key="),
        ({"image": "x", "label": 7}, "class", "no label among .*use label_key="),
        (torch.ones(2), None, "items must be tuples or mappings with a label"),
        (("x",), None, "a tuple of 1 has no label at 1"),
        (["x", 7], 2, "a list of 2 has no label at 2"),
        (("x", 7), "y", "a tuple of 2 has no label at 'y'"),
    ],
)
def test_items_without_a_label(item: Any, key: Any, message: str) -> None:
    data = IndexedDataset(Items(item), key)
    data.plant(torch.tensor([3]), torch.tensor([3]), num_classes=9)
    with pytest.raises(InputError, match=message):
        data[3]


@pytest.mark.parametrize("key", [2, -1])
def test_a_label_in_another_place(key: int) -> None:
    data = IndexedDataset(Items(("x", 400, 7)), key)
    data.plant(torch.tensor([3]), torch.tensor([3]), num_classes=9)
    assert data[3] == ("x", 400, 1, 3)


def test_of_several_keys_the_first_that_is_there_counts() -> None:
    data = IndexedDataset(Items({"label": 2, "labels": 7}), ("y", "labels", "label"))
    data.plant(torch.tensor([3]), torch.tensor([3]), num_classes=9)
    assert data.item(3) == {"label": 2, "labels": 1}


class Pair(NamedTuple):
    image: str
    label: int


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Pair("x", 7), Pair("x", 1)),
        (["x", 7], ["x", 1]),
        (("x", 7), ("x", 1)),
        (UserDict(x=0, label=7), UserDict(x=0, label=1)),
        (OrderedDict(x=0, label=7), OrderedDict(x=0, label=1)),
        (MappingProxyType({"x": 0, "label": 7}), {"x": 0, "label": 1}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_planted_item_keeps_its_type(item: Any, expected: Any) -> None:
    """Else some items of a batch would be of another type than the rest."""
    data = IndexedDataset(Items(item))
    data.plant(torch.tensor([3]), torch.tensor([3]), num_classes=9)
    assert data.item(3) == expected
    assert type(data.item(3)) is type(expected)
    assert item[find_label(item)] == 7


def test_an_index_of_ones_own_is_not_written_over() -> None:
    with pytest.raises(InputError, match="already has an entry 'index'"):
        IndexedDataset(Items({"label": 7, "index": 12}))[3]


@pytest.mark.parametrize("label", [9, -1, torch.tensor(400), np.int64(9)])
def test_a_number_that_is_no_class_is_not_planted(label: Any) -> None:
    """It may be an id; its remainder would be a label that nobody gave."""
    data = IndexedDataset(Items(("x", label)))
    data.plant(torch.tensor([3]), torch.tensor([3]), num_classes=9)
    with pytest.raises(InputError, match=r"label -?\d+ is outside 0..8: use label_key="):
        data[3]


def test_observed_labels_must_be_those_that_were_replaced() -> None:
    data = IndexedDataset(TensorDataset(torch.zeros(6), torch.tensor([0, 1, 2, 0, 1, 2])))
    data.plant(torch.tensor([1, 2, 4]), torch.tensor([2, 1, 1]), num_classes=3)
    data.check_observed(torch.tensor([-1, -1, -1]))  # nothing seen, nothing to say
    with pytest.raises(InputError, match="the planted labels were not used"):
        data.check_observed(torch.tensor([1, 2, 1]))
    assert [int(data[index][1]) for index in (1, 2)] == [0, 0]
    data.check_observed(torch.tensor([1, 2, 0]))  # the last was not handed out yet
    with pytest.raises(InputError, match="1 of 2 planted labels were observed as other labels"):
        data.check_observed(torch.tensor([1, 0, -1]))


def labels_of(loader: DataLoader[Any]) -> Tensor:
    return torch.cat([labels for _, labels, _ in loader])


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_see_planted_and_restored_labels(persistent: bool) -> None:
    """A persistent worker copied the dataset once; only shared memory reaches it."""
    data = IndexedDataset(TensorDataset(torch.zeros(6), torch.zeros(6, dtype=torch.int64)))
    data.plant(torch.tensor([1, 4]), torch.tensor([2, 3]), num_classes=4)
    loader = DataLoader(data, 2, num_workers=1, persistent_workers=persistent)
    assert labels_of(loader).tolist() == [0, 2, 0, 0, 3, 0]
    data.restore()
    assert labels_of(loader).tolist() == [0] * 6


def test_shifts_are_taken_around_the_classes() -> None:
    data = IndexedDataset(TensorDataset(torch.zeros(4), torch.tensor([0, 1, 2, 2])))
    data.plant(torch.tensor([0, 2, 3]), torch.tensor([2, 1, 2]), num_classes=3)
    assert [int(data[index][1]) for index in range(4)] == [2, 1, 0, 1]
    data.plant(torch.tensor([0, 2, 3]), torch.tensor([2, 1, 2]), num_classes=9)  # not twice
    assert [int(data[index][1]) for index in range(4)] == [2, 1, 3, 4]


def test_the_datasets_own_labels_are_never_written_to() -> None:
    labels = torch.tensor([0, 1, 2])
    item = {"label": labels[1]}
    data = IndexedDataset(Items(item))
    data.plant(torch.tensor([3]), torch.tensor([1]), num_classes=3)
    assert data[3]["label"] == 2
    assert labels.tolist() == [0, 1, 2]
    assert item == {"label": 1}


@pytest.mark.parametrize("label", [torch.tensor(150, dtype=torch.uint8), np.uint8(150)])
def test_bytes_do_not_overflow(label: Any) -> None:
    """150 + 120 = 270, of 200 classes the 70th; in eight bits it would be the 14th."""
    data = IndexedDataset(Items(("x", label)))
    data.plant(torch.tensor([3]), torch.tensor([120]), num_classes=200)
    planted = data[3][1]
    assert int(planted) == 70
    assert planted.dtype == label.dtype


@pytest.mark.parametrize("label", [torch.eye(3)[0], np.eye(3)[0], "cat", None, 0.5, math.inf])
def test_labels_that_are_no_class_number_are_refused(label: Any) -> None:
    data = IndexedDataset(Items(("x", label)))
    data.plant(torch.tensor([3]), torch.tensor([1]), num_classes=3)
    with pytest.raises(InputError, match="a label must be one class number, got "):
        data[3]


@pytest.mark.parametrize("image", [torch.rand(3, 64, 64), np.random.rand(64, 64), "x" * 999])
def test_an_image_in_the_labels_place_is_told_in_one_short_line(image: Any) -> None:
    with pytest.raises(InputError, match="a label must be one class number, got ") as caught:
        IndexedDataset(Items((7, image))).check_label()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("label", ["cat", (3, "meta"), {"label": 3}])
def test_labels_that_a_collate_function_may_yet_make_are_told_the_way_out(label: Any) -> None:
    with pytest.raises(InputError, match="; use counterfactual='wrong_label', which needs none$"):
        IndexedDataset(Items(("x", label))).check_label()


@pytest.mark.parametrize("item", [(1, torch.rand(3, 8, 8)), {"label": "cat", "number": 1}])
def test_a_label_in_another_place_is_told_its_name_alone(item: Any) -> None:
    with pytest.raises(InputError, match="label_key= to name the entry that is the label$"):
        IndexedDataset(Items(item)).check_label()
