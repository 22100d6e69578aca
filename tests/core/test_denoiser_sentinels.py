"""The Denoiser with sentinels: whose margin is recorded, what is planted, when it is undone."""

from __future__ import annotations

import io
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from oddly.core import Denoiser, IndexedDataset, judging
from oddly.core.ledger import STATISTICS
from oddly.errors import InputError
from tests.core.toy import K, N, Toy, make, planting, zeros
from tests.reference import ledger as ledger_twin
from tests.reference import sentinels as twin


def test_sentinels_where_a_dataset_has_examples_enough_and_weights_elsewhere() -> None:
    assert Denoiser(zeros(100), K, epochs=8).sentinels is not None
    assert Denoiser(zeros(100), K, epochs=8).rule.percentile is None  # what suits the noise
    few = Denoiser(zeros(99), K, epochs=8)
    assert few.sentinels is None and few.rule.counterfactual == "wrong_label"
    assert Denoiser(300, K, epochs=8).sentinels is None
    assert Denoiser(300, K, epochs=8).rule.percentile == 10.0
    assert Denoiser(zeros(), K, epochs=8, counterfactual="sentinels").sentinels is not None
    assert Denoiser(N, K, epochs=8, counterfactual="sentinels").sentinels is not None
    assert Denoiser(zeros(), K, epochs=8, counterfactual="weights").sentinels is None


@pytest.mark.parametrize("num_classes", [2, 3, 10])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_scores_against_the_twin(num_classes: int, statistic: str) -> None:
    """Random logits, in three epochs of batches; example 7 is in none, 8 in one."""
    size = 80
    denoiser = planting(examples=size, num_classes=num_classes, statistic=statistic, prune_after=4)
    sentinels = denoiser.sentinels
    assert sentinels is not None
    shifts = dict(zip(sentinels.indices.tolist(), sentinels.shifts.tolist(), strict=True))
    generator = torch.Generator().manual_seed(2)
    given = torch.randint(num_classes, (size,), generator=generator)
    epochs: list[list[tuple[int, float]]] = [[], [], []]
    planted_epochs: list[list[tuple[int, float]]] = [[], [], []]
    losses, rivals = np.full(size, np.nan), np.full(size, -1)
    for epoch in range(3):
        logits = torch.randn(size, num_classes, generator=generator)
        order = torch.randperm(size, generator=generator)
        order = order[(order != 7) & ((order != 8) | (epoch == 1))]
        for index in order.split(9):
            labels = denoiser.plant(index, given[index])
            denoiser.observe(index, logits[index], labels)
        for i in order.tolist():
            row, label = logits[i].double().numpy(), int(given[i])
            planted = (label + shifts.get(i, 0)) % num_classes
            margin, rivals[i] = twin.given_margin(row, label, planted)
            epochs[epoch].append((i, margin))
            losses[i] = np.log(np.exp(row).sum()) - row[label]
            if i in shifts:
                place = sentinels.indices.tolist().index(i)
                planted_epochs[epoch].append((place, twin.planted_margin(row, planted)[0]))
        assert denoiser.end_epoch(nn.Identity()) is None
    separations = [
        twin.separation([score for _, score in planted], [score for _, score in others])
        for planted, others in zip(planted_epochs, epochs, strict=True)
    ]
    assert sentinels.separations == pytest.approx(separations, rel=1e-4)
    weights = [twin.weigh(separated) for separated in separations]
    expected = ledger_twin.statistic(statistic, size, epochs, weights)
    assert np.isnan(expected[7])
    scores = ledger_twin.statistic(statistic, len(shifts), planted_epochs, weights)
    near = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(denoiser.ledger.values.numpy(), expected, **near)
    np.testing.assert_allclose(sentinels.ledger.values.numpy(), scores, **near)
    verdict = denoiser._judge(nn.Identity())
    np.testing.assert_allclose(verdict.losses.numpy(), losses, **near)
    assert torch.equal(verdict.labels.long(), torch.where(torch.arange(size) == 7, -1, given))
    assert verdict.rivals is not None
    assert verdict.rivals.tolist() == rivals.tolist()


def test_scores_are_fp32_also_for_bf16_logits_and_leave_the_graph_alone() -> None:
    denoiser = planting(prune_after=1)
    logits = torch.full((N, K), 1.0, dtype=torch.bfloat16, requires_grad=True)
    index = torch.arange(N)
    denoiser.observe(index, logits, denoiser.plant(index, torch.zeros_like(index)))
    logits.sum().backward()
    assert denoiser.ledger.current.dtype == torch.float32
    assert not denoiser.ledger.current.requires_grad


def test_planting_stops_with_the_verdict() -> None:
    toy, denoiser = Toy(), planting(prune_after=2)
    assert denoiser.sentinels is not None
    index = torch.arange(N)
    changed = (denoiser.plant(index, toy.labels) != toy.labels).nonzero().flatten()
    assert torch.equal(changed, denoiser.sentinels.indices)
    toy.run(denoiser, 2)
    assert denoiser.verdict is not None
    assert denoiser.plant(index, toy.labels) is toy.labels


def test_with_weights_nothing_is_planted() -> None:
    toy, data = Toy(), zeros()
    assert make().plant(torch.arange(N), toy.labels) is toy.labels
    Denoiser(data, K, prune_after=2, counterfactual="weights")
    assert [data[index][1] for index in range(N)] == [0] * N


@pytest.mark.parametrize("prune_after", [2, None])
def test_the_dataset_is_planted_and_restored(prune_after: int | None) -> None:
    """Also by the automatic E, 3 of 4 here."""
    toy = Toy()
    data = IndexedDataset(TensorDataset(toy.inputs, toy.labels))
    denoiser = planting(examples=data, epochs=4, prune_after=prune_after)
    assert denoiser.sentinels is not None
    planted = denoiser.sentinels.plant(torch.arange(N), toy.labels)
    expected = prune_after or 3
    for epoch in range(1, 5):
        inputs, labels, index = next(iter(DataLoader(data, N, sampler=denoiser.sampler)))
        assert torch.equal(labels, (planted if epoch <= expected else toy.labels)[index])
        denoiser.observe(index, toy.model(epoch)(inputs), labels)
        assert (denoiser.end_epoch(toy.model(epoch)) is not None) == (epoch == expected)
    assert denoiser.verdict is not None
    assert torch.equal(denoiser.verdict.labels.long(), toy.labels)


def test_a_verdict_before_its_time_restores_the_labels_too() -> None:
    toy = Toy()
    data = IndexedDataset(TensorDataset(toy.inputs, toy.labels))
    denoiser = planting(examples=data, epochs=9, prune_after=9)
    inputs, labels, index = next(iter(DataLoader(data, N, sampler=denoiser.sampler)))
    assert not torch.equal(labels, toy.labels[index])
    denoiser.observe(index, toy.model(1)(inputs), labels)
    assert denoiser.end_epoch(toy.model(1)) is None
    verdict = denoiser.judge_now(toy.model(1))
    assert torch.equal(verdict.labels.long(), toy.labels)
    _, labels, index = next(iter(DataLoader(data, N)))
    assert torch.equal(labels, toy.labels[index])


@pytest.mark.slow
def test_persistent_workers_see_the_restored_labels() -> None:
    toy = Toy()
    data = IndexedDataset(TensorDataset(toy.inputs, toy.labels))
    denoiser = planting(examples=data, prune_after=1)
    assert denoiser.sentinels is not None
    loader = DataLoader(data, 16, sampler=denoiser.sampler, num_workers=2, persistent_workers=True)
    seen: list[dict[int, int]] = [{}, {}]
    for epoch in range(2):
        for inputs, labels, index in loader:
            denoiser.observe(index, toy.model(epoch)(inputs), labels)
            seen[epoch].update(zip(index.tolist(), labels.tolist(), strict=True))
        denoiser.end_epoch(toy.model(epoch))
    planted = denoiser.sentinels.plant(torch.arange(N), toy.labels)
    assert seen[0] == dict(enumerate(planted.tolist()))
    assert seen[1] == {index: int(toy.labels[index]) for index in seen[1]}
    assert 0 < len(seen[1]) < N


class Mappings(Dataset[dict[str, Tensor]]):
    """Items as a Hugging Face dataset in torch format hands them out."""

    def __init__(self, toy: Toy) -> None:
        self.toy = toy

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"pixel_values": self.toy.inputs[index], "labels": self.toy.labels[index]}


def test_mapping_items_with_tensor_labels_through_a_loader() -> None:
    toy = Toy()
    data = IndexedDataset(Mappings(toy))
    denoiser = planting(examples=data, prune_after=2)
    assert denoiser.sentinels is not None
    for epoch in range(2):
        for batch in DataLoader(data, 16, sampler=denoiser.sampler):
            expected = denoiser.sentinels.plant(batch["index"], toy.labels[batch["index"]])
            assert torch.equal(batch["labels"], expected)
            logits = toy.model(epoch)(batch["pixel_values"])
            denoiser.observe(batch["index"], logits, batch["labels"])
        denoiser.end_epoch(toy.model(epoch))
    assert denoiser.verdict is not None
    assert torch.equal(denoiser.verdict.labels.long(), toy.labels)
    assert torch.equal(toy.labels, Toy().labels)  # the items' own tensors were not written to


def through_a_file(state: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


def assert_same_verdict(one: Denoiser, other: Denoiser) -> None:
    assert one.verdict is not None
    assert other.verdict is not None
    for name, value in vars(one.verdict).items():
        expected = getattr(other.verdict, name)
        if isinstance(value, Tensor):
            torch.testing.assert_close(value, expected, rtol=0, atol=0, equal_nan=True)
        elif name != "counterfactual":
            assert value == expected, name
    assert torch.equal(one.verdict.counterfactual.losses, other.verdict.counterfactual.losses)
    assert list(one.sampler) == list(other.sampler)


@pytest.mark.parametrize("prune_after", [3, None])
@pytest.mark.parametrize("done", [0, 1, 2, 3, 4])
def test_resumed_from_a_file_it_ends_alike(done: int, prune_after: int | None) -> None:
    toy = Toy()
    unbroken, broken, resumed = (planting(epochs=5, prune_after=prune_after) for _ in range(3))
    toy.run(unbroken, 5)
    toy.run(broken, done)
    resumed.load_state_dict(through_a_file(broken.state_dict()))
    toy.run(resumed, 5 - done)
    assert unbroken.verdict is not None
    assert unbroken.verdict.epoch == (prune_after or 4)
    assert_same_verdict(resumed, unbroken)
    assert resumed.sentinels is not None and unbroken.sentinels is not None
    assert resumed.sentinels.separations == unbroken.sentinels.separations


def test_resumed_in_the_middle_of_an_epoch_it_ends_alike() -> None:
    toy, unbroken, broken, resumed = Toy(), planting(), planting(), planting()
    toy.run(unbroken, 4)
    toy.run(broken, 1)
    first, second = torch.tensor(list(broken.sampler)).split(N // 2)
    for denoiser, index in ((broken, first), (resumed, second)):
        labels = denoiser.plant(index, toy.labels[index])
        denoiser.observe(index, toy.model(1)(toy.inputs[index]), labels)
        if denoiser is broken:
            resumed.load_state_dict(through_a_file(broken.state_dict()))
    resumed.end_epoch(toy.model(1))
    toy.run(resumed, 2)
    assert_same_verdict(resumed, unbroken)


def test_resumed_after_the_verdict_the_dataset_is_restored() -> None:
    toy, broken = Toy(), planting(prune_after=1)
    toy.run(broken, 1)
    data = IndexedDataset(TensorDataset(toy.inputs, toy.labels))
    resumed = planting(examples=data, prune_after=1)
    resumed.load_state_dict(through_a_file(broken.state_dict()))
    assert [int(data[index][1]) for index in range(N)] == toy.labels.tolist()


@pytest.mark.parametrize("done", [1, 3])
def test_resumed_with_the_examples_in_another_order_it_refuses(done: int) -> None:
    """Before the verdict and after it."""
    toy, broken, resumed = Toy(), planting(prune_after=2), planting(prune_after=2)
    toy.run(broken, done)
    resumed.load_state_dict(through_a_file(broken.state_dict()))
    toy.inputs, toy.labels = toy.inputs.flip(0), toy.labels.flip(0)
    with pytest.raises(InputError, match="labels are not those of the saved run"):
        toy.run(resumed, 1)


def test_the_noise_rate_is_told_by_sentinels_only() -> None:
    toy, sentinels, weights = Toy(), planting(), make()
    toy.run(sentinels, 3)
    toy.run(weights, 3)
    assert sentinels.verdict is not None and weights.verdict is not None
    assert sentinels.verdict.noise_rate is not None
    rate, low, high = sentinels.verdict.noise_rate
    assert 0 <= low <= rate <= high <= 1
    assert weights.verdict.noise_rate is None


@pytest.mark.parametrize("statistic", ["last", "ema"])
def test_sixteen_bytes_per_example_in_all(statistic: str) -> None:
    """Four each for value, this epoch's and loss, two for label and rival."""
    size = 100_000  # 2,000 sentinels, of some 40 bytes each
    denoiser = planting(examples=size, prune_after=2, statistic=statistic)
    index = torch.arange(4)
    denoiser.observe(index, torch.zeros(4, K), denoiser.plant(index, torch.zeros_like(index)))
    denoiser.end_epoch(nn.Linear(2, K))
    held = [*vars(denoiser).values(), *denoiser._observed.state_dict().values()]
    held += vars(denoiser.ledger).values()
    assert denoiser.sentinels is not None
    held += [*vars(denoiser.sentinels).values(), *vars(denoiser.sentinels.ledger).values()]
    total = sum(tensor.nbytes for tensor in held if isinstance(tensor, Tensor))
    assert 16 * size <= total <= 17 * size


def test_a_verdict_that_was_refused_can_be_asked_for_again() -> None:
    """Scores are shifted on the way to it: not those that the second judging reads."""
    toy, refused, usual = Toy(), planting(prune_after=9, strict=True), planting(prune_after=9)
    for denoiser in (refused, usual):
        toy.run(denoiser, 3)
    sparing = mock.patch.object(judging, "_classes_to_spare", return_value=torch.tensor([0]))
    with sparing, pytest.raises(InputError, match="would empty classes or prune tiny ones"):
        refused.judge_now(toy.model(2))
    verdict, expected = (each.judge_now(toy.model(2)) for each in (refused, usual))
    torch.testing.assert_close(verdict.scores, expected.scores, rtol=0, atol=0, equal_nan=True)
    assert verdict.threshold == expected.threshold


def test_a_run_with_other_classes_is_refused() -> None:
    with pytest.raises(InputError, match="the saved run has 3 classes, this one 4"):
        planting(num_classes=4).load_state_dict(planting().state_dict())
