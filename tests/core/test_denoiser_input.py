"""What the Denoiser refuses, each in one line."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from oddly.errors import InputError
from tests.core.toy import K, N, Toy, make


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"percentile": 101.0}, r"percentile must be within 0\.\.100, got 101"),
        ({"percentile": -0.5}, r"percentile must be within 0\.\.100, got -0\.5"),
        ({"percentile": math.nan}, r"percentile must be within 0\.\.100, got nan"),
        ({"prune_after": 0}, r"prune_after must be at least 1 \(finished epochs\), got 0"),
        ({"num_classes": 1}, "num_classes must be at least 2, got 1"),
        ({"num_classes": ["cat", "dog"]}, "num_classes must be a number, got list"),
        ({"statistic": "max"}, "statistic must be one of last, ema, got 'max'"),
        ({"examples": 0}, "the dataset is empty"),
        ({"draws": 0}, "draws"),
    ],
)
def test_bad_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(**options)


@pytest.mark.parametrize("bad", [-1, K, -100])
def test_a_label_outside_the_classes(bad: int) -> None:
    with pytest.raises(InputError, match=rf"label {bad} is outside 0\.\.2"):
        make().observe(torch.tensor([0, 1]), torch.zeros(2, K), torch.tensor([0, bad]))


@pytest.mark.parametrize("shape", [(2, K + 1), (2, K - 1), (2, K, 4), (2,)])
@pytest.mark.parametrize("counterfactual", ["weights", "sentinels"])
def test_logits_of_another_number_of_classes(shape: tuple[int, ...], counterfactual: str) -> None:
    """A wider head would go unnoticed and rivals be no class."""
    denoiser = make(counterfactual=counterfactual)
    index = torch.tensor([0, 1])
    labels = denoiser.plant(index, index)
    with pytest.raises(InputError, match=r"logits must be \(batch, 3\), a column per class, got"):
        denoiser.observe(index, torch.zeros(shape), labels)


@pytest.mark.parametrize(("index", "labels"), [((2, 1), (2,)), ((2,), (2, K)), ((1,), (2,))])
def test_index_and_labels_of_another_shape(index: tuple[int, ...], labels: tuple[int, ...]) -> None:
    observed = torch.zeros(index, dtype=torch.int64), torch.zeros(2, K), torch.zeros(labels)
    with pytest.raises(InputError, match="index and labels must have one number per example"):
        make().observe(*observed)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, ["a.png", "b.png"], "index must be a tensor, got list"),
        (1, (torch.zeros(2, K), torch.zeros(2, K)), "logits must be a tensor, got tuple"),
        (1, torch.zeros(2, K).numpy(), "logits must be a tensor, got ndarray"),
        (2, [0, 1], "labels must be a tensor, got list"),
    ],
)
def test_what_is_no_tensor(place: int, value: Any, message: str) -> None:
    """The third entry of an item taken for its index, a model with two outputs."""
    batch: list[Any] = [torch.tensor([0, 1]), torch.zeros(2, K), torch.tensor([0, 1])]
    batch[place] = value
    with pytest.raises(InputError, match=message):
        make().observe(*batch)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("counterfactual", ["weights", "sentinels", "wrong_label"])
def test_labels_that_are_no_whole_numbers(kind: torch.dtype, counterfactual: str) -> None:
    denoiser, index = make(counterfactual=counterfactual), torch.tensor([0, 1])
    denoiser.plant(index, index)
    with pytest.raises(InputError, match="labels must be class numbers as int64, got"):
        denoiser.observe(index, torch.zeros(2, K), index.to(kind))


@pytest.mark.parametrize("kind", [torch.int32, torch.uint8, torch.bool])
def test_other_whole_numbers_will_do(kind: torch.dtype) -> None:
    for counterfactual in ("weights", "wrong_label", "sentinels"):
        one, other = (make(counterfactual=counterfactual) for _ in range(2))
        index, logits = torch.tensor([0, 1]), torch.tensor([[0.5, 2.0, 1.0], [0.0, 1.0, 3.0]])
        for denoiser in (one, other):
            denoiser.plant(index, index)
        one.observe(index, logits, index.to(kind))
        other.observe(index, logits, index)
        assert torch.equal(one.ledger.current[:2], other.ledger.current[:2])


def test_a_loop_that_never_ends_an_epoch_is_told_once() -> None:
    toy, denoiser = Toy(), make()
    everything = torch.arange(N), toy.model(0)(toy.inputs), toy.labels
    for _ in range(3):
        denoiser.observe(*everything)
    with pytest.warns(UserWarning, match="240 observations of 60 examples without the end of"):
        denoiser.observe(*everything)
    for _ in range(4):
        denoiser.observe(*everything)  # a second warning would be an error


def test_a_loop_that_ends_its_epochs_is_not() -> None:
    toy, denoiser = Toy(), make(prune_after=9)
    for _ in range(8):
        denoiser.observe(torch.arange(N), toy.model(0)(toy.inputs), toy.labels)
        denoiser.end_epoch(toy.model(0))


@pytest.mark.parametrize("bad", [-1, N])
def test_an_index_outside_the_examples(bad: int) -> None:
    with pytest.raises(IndexError, match=rf"index {bad} is outside 0\.\.59"):
        make().observe(torch.tensor([bad]), torch.zeros(1, K), torch.tensor([0]))


def test_an_empty_batch_is_nothing() -> None:
    empty = torch.empty(0, dtype=torch.int64)
    denoiser = make()
    denoiser.observe(empty, torch.zeros(0, K), empty)
    denoiser.ledger.close_epoch()
    assert denoiser.ledger.values.isnan().all()


def test_a_model_without_a_head_is_told() -> None:
    toy, denoiser = Toy(), make(prune_after=1)
    denoiser.observe(torch.arange(N), toy.model(0)(toy.inputs), toy.labels)
    with pytest.raises(InputError, match="no final linear layer with 3 outputs"):
        denoiser.end_epoch(nn.Linear(3, 5))


def test_a_model_of_nan_is_refused() -> None:
    """A threshold of NaN would keep everything and say nothing."""
    toy, denoiser = Toy(), make(prune_after=1)
    model = toy.model(0)
    denoiser.observe(torch.arange(N), model(toy.inputs), toy.labels)
    nn.init.constant_(model.weight, math.nan)
    with pytest.raises(InputError, match="the counterfactual is NaN: check the model's outputs"):
        denoiser.end_epoch(model)
