"""Losses of made-up wrong labels: which labels, whose losses, and what comes of them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.core import Denoiser
from oddly.core.sentinels import wrong_label as module
from oddly.core.sentinels.wrong_label import WrongLabels
from oddly.errors import InputError
from tests.core.toy import K, N, Toy, make


def labels_asked(num_classes: int, logits: Tensor, given: Tensor) -> Tensor:
    """The labels whose losses were recorded, read back from the losses themselves."""
    wrong = WrongLabels(len(given), num_classes, seed=0)
    wrong.observe(torch.arange(len(given)), logits, given)
    losses = -F.log_softmax(logits, 1)
    distance = (losses - wrong.ledger.current[:, None]).abs()
    assert distance.min(1).values.max() < 1e-4
    return distance.argmin(1)


@pytest.mark.parametrize("num_classes", [3, 4, 10, 200])
@pytest.mark.parametrize("learnt", [False, True])
def test_never_the_given_nor_the_predicted_label(num_classes: int, learnt: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2000, num_classes, generator=generator)
    given = torch.randint(num_classes, (2000,), generator=generator)
    if learnt:
        logits += 9 * F.one_hot(given, num_classes)
    asked = labels_asked(num_classes, logits, given)
    assert (asked != given).all()
    assert (asked != logits.argmax(1)).all()
    if num_classes <= 10:  # and any other may be asked
        assert len(asked.unique()) == num_classes


def test_of_three_classes_the_third() -> None:
    """Given 0 and predicted 1, or the other way round: whatever was drawn, 2 is left."""
    logits = torch.tensor([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0]]).repeat(50, 1)
    assert labels_asked(3, logits, torch.tensor([0, 1] * 50)).tolist() == [2] * 100


@pytest.mark.parametrize("predicted", [0, 1])
def test_of_two_classes_the_other(predicted: int) -> None:
    logits = (3.0 * F.one_hot(torch.full((20,), predicted), 2)).float()
    given = torch.arange(20) % 2
    assert labels_asked(2, logits, given).tolist() == (1 - given).tolist()


def test_the_losses_by_hand() -> None:
    """Logits log 6, log 3, log 1 with label 0: 1 or 2 would have cost log 10/3 or log 10."""
    wrong = WrongLabels(40, 3, seed=0)
    logits = torch.tensor([6.0, 3.0, 1.0]).log().repeat(40, 1)
    wrong.observe(torch.arange(40), logits, torch.zeros(40, dtype=torch.int64))
    found = wrong.ledger.current
    costs = {1: math.log(10 / 3), 2: math.log(10)}
    expected = [costs[shift] for shift in wrong.shifts.tolist()]
    assert found.tolist() == pytest.approx(expected)
    assert len(set(expected)) == 2


def test_of_many_examples_a_random_few_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 100)
    wrong = WrongLabels(1000, 5, seed=0)
    assert wrong.indices.shape == wrong.ledger.current.shape == (100,)
    index = torch.arange(1000)
    others = index[~torch.isin(index, wrong.indices)]
    wrong.observe(others, torch.randn(900, 5), others % 5)
    assert wrong.ledger.current.isnan().all()
    wrong.observe(index, torch.randn(1000, 5), index % 5)
    assert not wrong.ledger.current.isnan().any()


def test_the_same_example_is_asked_for_the_same_label_after_a_resumption() -> None:
    first, second = WrongLabels(50, 10, seed=1), WrongLabels(50, 10, seed=2)
    logits, given = torch.randn(50, 10), torch.arange(50) % 10
    first.observe(torch.arange(25), logits[:25], given[:25])
    second.load_state_dict(first.state_dict())
    for wrong in (first, second):
        wrong.observe(torch.arange(25, 50), logits[25:], given[25:])
    assert torch.equal(second.ledger.current, first.ledger.current)
    assert not first.ledger.current.isnan().any()


def test_the_denoiser_finds_the_wrong_labels_of_any_network() -> None:
    """No head is looked for: an identity will do as the model."""
    toy, denoiser = Toy(), make(counterfactual="wrong_label")
    toy.run(denoiser, 2)
    index = torch.arange(N)
    assert denoiser.plant(index, toy.labels) is toy.labels  # nothing is planted
    denoiser.observe(index, toy.model(2)(toy.inputs), toy.labels)
    verdict = denoiser.end_epoch(nn.Identity())
    assert verdict is not None
    assert sorted(verdict.removed.tolist()) == toy.wrong.tolist()
    assert (verdict.counterfactual.source, verdict.percentile) == ("wrong_label", 10.0)
    assert len(verdict.counterfactual.losses) == N
    assert verdict.noise_rate is None
    assert verdict.rivals is None


def test_the_threshold_is_the_last_epochs_alone() -> None:
    """As the examples' losses: had the first epoch counted, both would lie elsewhere."""
    toy, denoiser = Toy(), make(counterfactual="wrong_label", prune_after=2)
    toy.run(denoiser, 2)
    logits = toy.model(1)(toy.inputs).detach()
    assert denoiser.verdict is not None
    expected = F.cross_entropy(logits, toy.labels, reduction="none")
    torch.testing.assert_close(denoiser.verdict.losses, expected)
    again = WrongLabels(N, K, seed=0)
    again.observe(torch.arange(N), logits, toy.labels)
    torch.testing.assert_close(
        denoiser.verdict.counterfactual.losses, again.ledger.current.sort().values
    )


def test_examples_never_seen_are_not_asked() -> None:
    toy, denoiser = Toy(), make(counterfactual="wrong_label", prune_after=1)
    index = torch.arange(5, N)
    denoiser.observe(index, toy.model(0)(toy.inputs[index]), toy.labels[index])
    verdict = denoiser.end_epoch(toy.model(0))
    assert verdict is not None
    assert len(verdict.counterfactual.losses) == N - 5
    assert verdict.keep[:5].all()


@pytest.mark.parametrize("logits", [None, torch.full((N, K), math.nan)])
def test_nothing_observed_or_nan_is_told(logits: Tensor | None) -> None:
    denoiser = make(counterfactual="wrong_label", prune_after=1)
    if logits is not None:
        denoiser.observe(torch.arange(N), logits, Toy().labels)
    with pytest.raises(InputError, match="NaN"):
        denoiser.end_epoch(nn.Identity())


def test_averages_over_epochs_are_refused() -> None:
    with pytest.raises(InputError, match="wrong_label only works with statistic last"):
        Denoiser(N, K, prune_after=1, counterfactual="wrong_label", statistic="ema")
