"""What the Denoiser refuses where labels are planted, each in one line."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from oddly.core import Denoiser
from oddly.core.rule import PERCENTILES
from oddly.errors import InputError
from tests.core.toy import K, N, Toy, make, planting, zeros


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"counterfactual": "guess"}, "counterfactual must be one of sentinels, weights, wrong_l"),
        ({"prune_after": 9, "epochs": 8}, "prune_after = 9 is beyond the 8 epochs"),
        ({"target_precision": 2.0}, "target_precision must be between 0 and 1, got 2"),
        ({"num_classes": 1}, "num_classes must be at least 2, got 1"),
    ],
)
def test_bad_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        planting(**options)


@pytest.mark.parametrize("bad", [-1, N])
def test_an_index_outside_the_examples(bad: int) -> None:
    denoiser, index = planting(), torch.tensor([bad])
    labels = denoiser.plant(index, torch.tensor([0]))
    with pytest.raises(IndexError, match=rf"index {bad} is outside 0\.\.59"):
        denoiser.observe(index, torch.zeros(1, K), labels)


def test_a_model_of_nan_is_refused() -> None:
    toy, denoiser = Toy(), planting(prune_after=1)
    index = torch.arange(N)
    denoiser.observe(index, torch.full((N, K), torch.nan), denoiser.plant(index, toy.labels))
    with pytest.raises(InputError, match="NaN"):
        denoiser.end_epoch(toy.model(0))


def test_forgetting_to_plant_is_told_at_once() -> None:
    """Unplanted, the sentinels would look perfect and almost everything would be removed."""
    toy = Toy()
    with pytest.raises(InputError, match=r"no sentinels planted: train on labels ="):
        planting().observe(torch.arange(N), toy.model(0)(toy.inputs), toy.labels)


def test_a_loader_that_reads_another_dataset_is_told_after_the_first_epoch() -> None:
    toy = Toy()
    denoiser = planting(examples=zeros(), prune_after=3)
    denoiser.observe(torch.arange(N), toy.model(0)(toy.inputs), toy.labels)
    with pytest.raises(InputError, match="the planted labels were not used"):
        denoiser.end_epoch(toy.model(0))


def test_what_a_dataset_has_planted_is_not_planted_again() -> None:
    labels = torch.zeros(N, dtype=torch.int64)
    assert planting(examples=zeros()).plant(torch.arange(N), labels) is labels


def test_a_plain_dataset_is_told_to_be_wrapped() -> None:
    plain: Any = TensorDataset(torch.zeros(3))
    with pytest.raises(InputError, match=r"expects IndexedDataset\(your TensorDataset\)"):
        Denoiser(plain, K, epochs=3)


def test_sentinels_never_seen_do_not_count() -> None:
    """drop_last, or an epoch broken off: NaN among the counterfactual would be its largest."""
    toy, denoiser = Toy(), planting(prune_after=1)
    assert denoiser.sentinels is not None
    index = torch.arange(N)
    index = index[index != denoiser.sentinels.indices[0]]
    denoiser.observe(
        index, toy.model(0)(toy.inputs[index]), denoiser.plant(index, toy.labels[index])
    )
    verdict = denoiser.end_epoch(toy.model(0))
    assert verdict is not None
    assert len(verdict.counterfactual.losses) == len(denoiser.sentinels.indices) - 1
    assert not verdict.counterfactual.losses.isnan().any()
    verdict.counterfactual.summary()


def test_nothing_observed_is_told() -> None:
    with pytest.raises(InputError, match="no sentinel was observed"):
        planting(prune_after=1).end_epoch(Toy().model(0))


@pytest.mark.parametrize("saved", PERCENTILES)
@pytest.mark.parametrize("resumed", PERCENTILES)
def test_state_of_another_counterfactual_is_refused(saved: str, resumed: str) -> None:
    state, denoiser = make(counterfactual=saved).state_dict(), make(counterfactual=resumed)
    if saved == resumed:
        denoiser.load_state_dict(state)
        return
    with pytest.raises(InputError, match="saved run used a different counterfactual"):
        denoiser.load_state_dict(state)


def test_a_loaded_state_brings_its_sentinels_to_the_zeros() -> None:
    data = zeros()
    resumed, saved = planting(examples=data, seed=1), planting(seed=2)
    resumed.load_state_dict(saved.state_dict())
    assert saved.sentinels is not None
    planted = [index for index in range(N) if data[index][1] != 0]
    assert planted == saved.sentinels.indices.tolist()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_index_types(dtype: torch.dtype) -> None:
    toy, denoiser = Toy(), planting(prune_after=1)
    index = torch.arange(N, dtype=dtype)
    denoiser.observe(index, toy.model(0)(toy.inputs), denoiser.plant(index, toy.labels))
    assert not denoiser.ledger.current.isnan().any()


@pytest.mark.parametrize("counterfactual", PERCENTILES)
@pytest.mark.parametrize("transposed", [False, True])
def test_the_logits_are_left_alone(counterfactual: str, transposed: bool) -> None:
    """One row, or columns that lie in a row in memory: neither needs a copy to be turned."""
    denoiser = Denoiser(400, 3, prune_after=2, counterfactual=counterfactual)
    index = torch.arange(5 if transposed else 1)
    labels = denoiser.plant(index, index % 3)
    logits = torch.randn(3, 5).t() if transposed else torch.randn(1, 3)
    before = logits.clone()
    denoiser.observe(index, logits, labels)
    assert torch.equal(logits, before)


def test_a_loader_that_does_not_heed_the_verdict_is_told_once() -> None:
    """Shuffled by itself instead of by the sampler, everything removed would come again."""
    data = zeros(400)
    denoiser = Denoiser(data, K, prune_after=1)
    index = torch.arange(400)
    labels = torch.tensor([data[i][1] for i in range(400)])
    logits = 3.0 * torch.eye(K)[torch.zeros_like(index)]
    logits[:20] = 4.0 * torch.eye(K)[1]  # 20 that the network would rather call 1
    denoiser.observe(index, logits, labels)
    verdict = denoiser.end_epoch(nn.Identity())
    assert verdict is not None and 0 < verdict.num_removed < 400
    kept = torch.tensor(list(denoiser.sampler))
    denoiser.observe(kept, logits[kept], labels[kept])  # nothing to tell
    stubborn = Denoiser(data, K, prune_after=1)
    stubborn.verdict = verdict
    with pytest.warns(UserWarning, match="your loader still yields removed examples") as told:
        stubborn.observe(index, logits, labels)
        stubborn.observe(index, logits, labels)
    assert len(told) == 1
    assert told[0].filename == __file__


@pytest.mark.parametrize("state", [{}, {"model": {}, "denoiser": {}}, None])
def test_another_state_is_told_from_a_denoisers(state: Any) -> None:
    with pytest.raises(InputError, match="not the state of a Denoiser"):
        Denoiser(200, 10, epochs=3).load_state_dict(state)
