"""Columns beside the ledger: written by slot, whole again after a break."""

from __future__ import annotations

import pytest
import torch

from oddly.core.observed import COMPARED, Observed
from oddly.errors import InputError


def test_the_last_value_of_each_example_stands() -> None:
    observed = Observed(3, num_classes=10, margins=True)
    slots = torch.tensor([2, 0, 3])  # 3: the spare one, as of an index out of range
    losses, rivals = torch.tensor([0.5, 1.5, 9.0]), torch.tensor([1, 7, 9])
    observed.write(slots, labels=torch.tensor([4, 5, 9]), losses=losses, rivals=rivals)
    observed.write(torch.tensor([2]), labels=torch.tensor([6]))
    assert observed["labels"].tolist() == [5, -1, 6]
    assert observed["losses"].nan_to_num(-1).tolist() == [1.5, -1, 0.5]
    assert observed["rivals"].tolist() == [7, -1, 1]


def test_two_bytes_a_label_unless_there_are_too_many_classes() -> None:
    assert Observed(3, 2**15 - 1, margins=False)["labels"].dtype == torch.int16
    many = Observed(3, 2**15, margins=False)
    many.write(torch.tensor([0]), labels=torch.tensor([2**15 - 1]))
    assert many["labels"].tolist() == [2**15 - 1, -1, -1]
    assert len(many["losses"]) == len(many["rivals"]) == 0


def test_a_saved_state_is_a_copy_once_it_is_loaded() -> None:
    first, second = (Observed(2, 5, margins=True) for _ in range(2))
    first.write(torch.tensor([1]), labels=torch.tensor([3]))
    second.load_state_dict({**first.state_dict(), "epoch": 4})
    second.write(torch.tensor([0]), labels=torch.tensor([2]))
    assert first["labels"].tolist() == [-1, 3] and second["labels"].tolist() == [2, 3]


def test_other_labels_after_a_restore_are_refused_once() -> None:
    first, second = (Observed(200, 5, margins=True) for _ in range(2))
    index, labels = torch.arange(100), torch.arange(100) % 5
    first.write(index, labels=labels)
    first.compare(index, labels.flip(0))  # nothing was restored
    second.load_state_dict(first.state_dict())
    with pytest.raises(InputError, match=r"8 of 10 labels are not those of the saved run: go on w"):
        second.compare(index[:10], labels[:10].clamp(max=0))
    second.compare(torch.arange(100, 200), labels)  # not seen before: says nothing
    second.compare(index[:10], torch.rand(10))  # after the verdict anything may come
    second.compare(index[:COMPARED], labels[:COMPARED])  # ten were seen above
    second.compare(index, labels.flip(0))  # that was enough
