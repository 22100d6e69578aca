"""More outputs than classes: the verdict is as if the network had no others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from oddly.core import Denoiser, IndexedDataset, LossLedger, Verdict, denoise, draw_losses
from oddly.core.judging import judge_by_sentinels
from oddly.core.observed import find_occurring
from oddly.core.sentinels.occurring import Occurring
from oddly.core.sentinels.planting import Scored, Sentinels
from oddly.core.sentinels.wrong_label import WrongLabels
from oddly.errors import InputError

OCCUR, SIZE = (1, 4, 7), 400


def blobs(seed: int = 0, size: int = SIZE) -> tuple[Tensor, Tensor, Tensor]:
    """Points around three corners, given labels out of 1, 4 and 7, and which fifth is wrong."""
    generator = torch.Generator().manual_seed(seed)
    true = torch.arange(size) % 3
    points = F.one_hot(true, 3) + 0.1 * torch.randn(size, 3, generator=generator)
    wrong = torch.rand(size, generator=generator) < 0.2
    given = torch.where(wrong, (true + torch.randint(1, 3, (size,), generator=generator)) % 3, true)
    return points, torch.tensor(OCCUR)[given], wrong


def train(outputs: int, labels: Tensor, points: Tensor, **options: Any) -> Verdict:
    torch.manual_seed(0)
    data = DataLoader(TensorDataset(points, labels), 20, shuffle=True)
    loader, denoiser = denoise(data, outputs, 12, **options)
    model = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, outputs))
    optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(12):
        for inputs, given, index in loader:
            logits = model(inputs)
            denoiser.observe(index, logits, given)
            optimiser.zero_grad()
            F.cross_entropy(logits, given).backward()
            optimiser.step()
        denoiser.end_epoch(model)
    assert denoiser.verdict is not None
    return denoiser.verdict


@pytest.mark.parametrize("counterfactual", ["sentinels", "wrong_label"])
def test_outputs_that_no_label_uses_do_not_matter(counterfactual: str) -> None:
    points, labels, wrong = blobs()
    found = train(300, labels, points, counterfactual=counterfactual)
    removed = ~found.keep
    assert float(wrong[removed].float().mean()) > 0.9
    assert float(removed[wrong].float().mean()) > 0.8
    assert found.one_way == found.called == ()  # the labels are wrong at random


def test_planted_labels_are_of_classes_that_occur() -> None:
    given = torch.tensor(OCCUR).repeat(200)
    sentinels = Sentinels(len(given), 300, "ema", 0)
    before, own = sentinels.shifts.clone(), given[sentinels.indices]
    sentinels.separations = [9.0]  # so far above any other that training would seem to memorise
    assert sentinels.keep_to_classes(given)
    assert sentinels.separations == [0.0]
    planted = (own + sentinels.shifts) % 300
    assert sorted(planted.unique().tolist()) == list(OCCUR) and bool((planted != own).all())
    there = torch.isin((own + before) % 300, torch.tensor(OCCUR))
    assert torch.equal(sentinels.shifts[there], before[there])
    counts = torch.bincount(planted, minlength=8)[list(OCCUR)]
    assert int(counts.min()) > 0.2 * len(planted)
    assert not sentinels.keep_to_classes(given)  # nothing is left to be moved
    again = Sentinels(len(given), 300, "ema", 0)
    again.load_state_dict(sentinels.state_dict())
    assert torch.equal(again.shifts, sentinels.shifts) and again.occurring == 3


@pytest.mark.parametrize(("occur", "margin"), [((1, 4), 3.0), ((1, 4, 7), -5.0)])
def test_of_two_classes_that_occur_the_planted_one_is_the_rival(
    occur: tuple[int, ...], margin: float
) -> None:
    """It is a rival of the given label only if no other class could be."""
    given = torch.tensor(occur).repeat(200)
    sentinels = Sentinels(len(given), 10, "ema", 0)
    sentinels.keep_to_classes(given)
    index = sentinels.indices
    planted = (given[index] + sentinels.shifts) % 10
    logits = 5.0 * F.one_hot(given[index], 10) + 8.0 * F.one_hot(planted, 10)
    scored, _ = sentinels.observe(index, logits, planted)
    assert torch.equal(scored.labels, given[index])
    assert scored.scores.tolist() == [margin] * len(index)


def test_unseen_examples_keep_their_planted_label() -> None:
    given = torch.full((600,), -1)
    given[::2] = torch.tensor(OCCUR).repeat(100)
    sentinels = Sentinels(len(given), 300, "ema", 0)
    before, unseen = sentinels.shifts.clone(), given[sentinels.indices] < 0
    sentinels.keep_to_classes(given)
    assert torch.equal(sentinels.shifts[unseen], before[unseen])


def test_made_up_labels_are_of_classes_that_occur() -> None:
    """Also the next one, where the network predicts the first."""
    given = torch.tensor(OCCUR).repeat(20)
    few, index = WrongLabels(len(given), 300, 0), torch.arange(60)
    assert few.keep_to_classes(given)
    logits = torch.randn(60, 300, generator=torch.Generator().manual_seed(0))
    logits[:, list(OCCUR)] += 9
    few.observe(index, logits, given)
    few.ledger.close_epoch()
    nll = -logits.log_softmax(1)
    least = torch.stack([nll[:, k] for k in OCCUR], 1)
    assert bool((few.losses()[:, None] == least[few.indices]).any(1).all())
    predicted = nll.argmin(1) != given  # a wrong prediction is never the made-up label
    assert not bool((few.losses() == nll.min(1).values[few.indices])[predicted].any())


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_that_live_on_plant_the_other_labels(context: str) -> None:
    data = TensorDataset(torch.zeros(300, 1), torch.tensor(OCCUR).repeat(100))
    source = DataLoader(
        data, 50, num_workers=1, persistent_workers=True, multiprocessing_context=context
    )
    loader, denoiser = denoise(source, 300, 9)
    seen: list[set[int]] = []
    for _ in range(2):
        planted = set()
        for inputs, labels, index in loader:
            denoiser.observe(index, torch.zeros(len(inputs), 300), labels)
            planted |= set(labels.tolist())
        denoiser.end_epoch(nn.Linear(1, 300))
        seen.append(planted)
    assert len(seen[0]) > 3 and seen[1] == set(OCCUR)


def test_judged_after_the_first_epoch_there_are_too_few() -> None:
    points, labels, _ = blobs()
    with pytest.raises(InputError, match="only 3 of 300 classes occur; judge after a later epoch"):
        train(300, labels, points, prune_after=1)


def test_the_papers_losses_are_those_of_classes_that_occur() -> None:
    head, few = nn.Linear(5, 300), torch.tensor(OCCUR)
    with torch.no_grad():
        head.bias[few] += 50  # what training does
    drawn = draw_losses(head, 500, torch.Generator().manual_seed(0), few)
    every = draw_losses(head, 500, torch.Generator().manual_seed(0))
    assert float(drawn.max()) < 10 < float(every.median())
    denoiser = Denoiser(300, 300, prune_after=1, counterfactual="weights", draws=500)
    labels = few.repeat(100)
    denoiser.observe(torch.arange(300), 20.0 * F.one_hot(labels, 300), labels)
    verdict = denoiser.end_epoch(head)
    assert verdict is not None and float(verdict.counterfactual.losses.max()) < 10


def test_classes_are_renumbered_and_back() -> None:
    labels, rivals = torch.tensor([7, 1, -1, 4]), torch.tensor([4, 9, -1, 1])
    occurring = Occurring(labels, 10)
    assert len(occurring) == 3 and occurring.classes.tolist() == list(OCCUR)
    same = occurring.renumber(Scored(torch.zeros(4), labels, rivals))
    assert same.labels.tolist() == [2, 0, -1, 1]
    assert same.rivals.tolist() == [1, 1, -1, 0]  # class 9 does not occur: another stands for it
    assert occurring.original(((2, 0), (1, 2))) == ((7, 1), (4, 7))


def test_what_occurs() -> None:
    assert find_occurring(torch.tensor([3, -1, 0, 3], dtype=torch.int16), 5).tolist() == [0, 3]
    assert find_occurring(torch.tensor([2, 2]), 3).tolist() == [0, 1, 2]  # one is too few


def test_rules_are_told_in_the_users_numbers() -> None:
    """Half of class 1 is called 7, where 300 outputs have but three classes."""
    generator = torch.Generator().manual_seed(0)
    true = torch.tensor(OCCUR).repeat_interleave(300)
    called = (true == 1) & (torch.rand(900, generator=generator) < 0.35)
    given = torch.where(called, 7, true)
    rivals = torch.where(given == 7, 1, torch.where(given == 1, 7, 1))
    scores = torch.where(called, 0.5, torch.where(true == 1, -0.9, -4.0))
    scores += 0.2 * torch.randn(900, generator=generator)
    planted = torch.tensor(OCCUR).repeat(40)
    sentinels = Scored(6 + torch.randn(120, generator=generator), planted, planted.roll(1))
    verdict = judge_by_sentinels(
        Scored(scores, given, rivals), scores.clone(), sentinels, None, 5, 300
    )
    assert verdict.called == ((7, 1),)


def test_a_ledger_that_forgets_begins_again() -> None:
    ledger, fresh = LossLedger(3), LossLedger(3)
    ledger.record(torch.tensor([0, 1]), torch.tensor([1.0, 2.0]))
    ledger.close_epoch()
    ledger.record(torch.tensor([2]), torch.tensor([9.0]))
    ledger.forget()
    assert bool(ledger.values.isnan().all())
    for each in (ledger, fresh):
        each.record(torch.arange(3), torch.tensor([4.0, 5.0, 6.0]))
        each.close_epoch(0.3)
    assert torch.equal(ledger.values, fresh.values)


def test_an_indexed_dataset_can_change_what_it_plants() -> None:
    data = IndexedDataset(TensorDataset(torch.zeros(3), torch.tensor([0, 1, 2])))
    for shifts, seen in (([1, 2], [1, 1, 1]), ([2, 1], [2, 1, 0])):
        data.plant(torch.tensor([0, 2]), torch.tensor(shifts), num_classes=3)
        assert [int(data[index][1]) for index in range(3)] == seen


def test_stopped_in_the_first_epoch_what_was_seen_is_judged() -> None:
    """Nothing is forgotten before a verdict, however few classes were seen by then."""
    labels = torch.arange(300) % 100
    denoiser = Denoiser(300, 100, prune_after=5, counterfactual="sentinels")
    index = (labels < 80).nonzero().flatten()
    planted = denoiser.plant(index, labels[index])
    logits = 5.0 * F.one_hot(labels[index], 100) + torch.rand(len(index), 100)
    denoiser.observe(index, logits, planted)
    verdict = denoiser.judge_now(nn.Linear(1, 100))
    assert verdict.epoch == 1 and bool(verdict.scores[index].isfinite().all())


def test_before_the_second_epoch_there_is_nothing_to_judge() -> None:
    denoiser = Denoiser(300, 300, prune_after=5, counterfactual="sentinels")
    index, labels = torch.arange(300), torch.tensor(OCCUR).repeat(100)
    denoiser.observe(index, torch.rand(300, 300), denoiser.plant(index, labels))
    denoiser.end_epoch(nn.Linear(1, 300))
    with pytest.raises(InputError, match="no example was observed in an epoch that counts"):
        denoiser.judge_now(nn.Linear(1, 300))


def test_a_few_labels_without_examples_change_nothing() -> None:
    given = torch.arange(300) % 29  # one class of thirty has no example
    sentinels = Sentinels(300, 30, "ema", 0)
    before = sentinels.shifts.clone()
    assert not sentinels.keep_to_classes(given) and torch.equal(sentinels.shifts, before)
    planted = (given[sentinels.indices] + before) % 30
    left = Occurring(given, 30).renumber_planted(Scored(torch.zeros(30), planted, planted))
    assert len(left.scores) == int((planted != 29).sum())


@pytest.mark.parametrize(("epochs", "pruned"), [(2, 2), (3, 2)])
def test_a_short_training_is_judged_once_others_are_planted(epochs: int, pruned: int) -> None:
    labels = torch.tensor(OCCUR).repeat(200)
    denoiser = Denoiser(600, 30, epochs=epochs, counterfactual="sentinels")
    generator = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        planted = denoiser.plant(torch.arange(600), labels)
        logits = 5 * F.one_hot(labels, 30) + torch.rand(600, 30, generator=generator)
        denoiser.observe(torch.arange(600), logits, planted)
        denoiser.end_epoch(nn.Linear(1, 30))
    assert denoiser.verdict is not None and denoiser.verdict.epoch == pruned
    assert denoiser.verdict.num_removed == 0


def test_judged_too_early_it_goes_on_and_plants_others() -> None:
    labels = torch.tensor(OCCUR).repeat(200)
    denoiser = Denoiser(600, 300, prune_after=3, counterfactual="sentinels")
    for epoch in range(1, 4):
        planted = denoiser.plant(torch.arange(600), labels)
        logits = 5 * F.one_hot(labels, 300) + torch.rand(600, 300)
        denoiser.observe(torch.arange(600), logits, planted)
        if epoch == 1:
            with pytest.raises(InputError, match="only 3 of 300 classes occur"):
                denoiser.judge_now(nn.Linear(1, 300))
        else:
            denoiser.end_epoch(nn.Linear(1, 300))
    assert denoiser.verdict is not None and denoiser.verdict.epoch == 3


def test_a_first_epoch_that_is_cut_short_decides_nothing() -> None:
    """Of ordered examples it sees some classes only."""
    labels = torch.arange(1000) // 100
    denoiser = Denoiser(1000, 10, prune_after=5, counterfactual="sentinels")
    assert denoiser.sentinels is not None
    before = denoiser.sentinels.shifts.clone()
    seen = torch.arange(200)
    denoiser.observe(seen, torch.rand(200, 10), denoiser.plant(seen, labels[seen]))
    denoiser.end_epoch(nn.Linear(1, 10))
    assert torch.equal(denoiser.sentinels.shifts, before)
    assert denoiser.sentinels.occurring == 10 and not denoiser.ledger.is_empty
