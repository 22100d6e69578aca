"""Real training, as in the Denoiser's docstring: does it find the wrong labels by itself?"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from oddly.core import Counterfactual, Denoiser, IndexedDataset, Verdict
from oddly.core.sentinels.cut import cut_by_sentinels

SIZE, EPOCHS = 2000, 20


def make_blobs(
    num_classes: int, noise: float, seed: int, size: int = SIZE
) -> tuple[Tensor, Tensor, Tensor]:
    """Points around the corners of a regular polygon, the labels given, and which are wrong."""
    generator = torch.Generator().manual_seed(seed)
    true = torch.arange(size) % num_classes
    angle = true * (2 * torch.pi / num_classes)
    points = torch.stack((angle.cos(), angle.sin()), 1)
    points += 0.15 * torch.randn(size, 2, generator=generator)
    wrong = torch.rand(size, generator=generator) < noise
    shift = torch.randint(1, num_classes, (size,), generator=generator)
    return points, torch.where(wrong, (true + shift) % num_classes, true), wrong


def train(
    points: Tensor, labels: Tensor, num_classes: int, seed: int
) -> tuple[Verdict, IndexedDataset]:
    torch.manual_seed(seed)
    dataset = IndexedDataset(TensorDataset(points, labels))
    denoiser = Denoiser(dataset, num_classes, epochs=EPOCHS, seed=seed)
    run(denoiser, dataset, num_classes, EPOCHS)
    assert denoiser.verdict is not None
    return denoiser.verdict, dataset


def run(denoiser: Denoiser, dataset: IndexedDataset, num_classes: int, epochs: int) -> None:
    loader = DataLoader(dataset, 50, sampler=denoiser.sampler)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, num_classes))
    optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(epochs):
        for inputs, given, index in loader:
            logits = model(inputs)
            denoiser.observe(index, logits, given)
            loss = F.cross_entropy(logits, given)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        denoiser.end_epoch(model)


@pytest.mark.slow
@pytest.mark.parametrize(("num_classes", "seed"), [(3, 0), (5, 1)])
def test_finds_three_wrong_labels_in_ten(num_classes: int, seed: int) -> None:
    points, labels, wrong = make_blobs(num_classes, 0.3, seed)
    verdict, dataset = train(points, labels, num_classes, seed)
    assert f1(~verdict.keep, wrong) > 0.9
    assert verdict.noise_rate is not None
    assert verdict.noise_rate[0] == pytest.approx(wrong.float().mean().item(), abs=0.05)
    assert torch.equal(verdict.labels.long(), labels)  # given ones, of sentinels too
    assert 1 <= verdict.epoch <= 0.8 * EPOCHS
    assert [int(dataset[index][1]) for index in range(SIZE)] == labels.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("num_classes", "seed"), [(3, 0), (5, 1)])
def test_clean_data_stay_nearly_whole(num_classes: int, seed: int) -> None:
    points, labels, _ = make_blobs(num_classes, 0.0, seed)
    verdict, _ = train(points, labels, num_classes, seed)
    assert verdict.removed_fraction < 0.03


@pytest.mark.slow
@pytest.mark.parametrize(("size", "seed", "gain"), [(3000, 0, 0.9), (3000, 1, 0.9), (2000, 1, 0.8)])
def test_a_systematic_confusion_is_found_through_its_pair(
    size: int, seed: int, gain: float
) -> None:
    """Two in five of class 0 carry label 1, beside 10 % of random noise.

    The network learns that label 1 is likely there, so that the margin alone hardly speaks
    against it; that this pair is so frequent among wrong labels does, the more the more there are.
    """
    points, labels, random = make_blobs(5, 0.1, seed, size)
    generator = torch.Generator().manual_seed(seed + 100)
    confused = (torch.arange(size) % 5 == 0) & ~random
    confused &= torch.rand(size, generator=generator) < 0.4
    labels[confused] = 1
    wrong = random | confused
    torch.manual_seed(seed)
    dataset = IndexedDataset(TensorDataset(points, labels))
    denoiser = Denoiser(dataset, 5, prune_after=9, seed=seed)
    run(denoiser, dataset, 5, epochs=8)  # one short of the verdict: all is still as observed
    assert denoiser.sentinels is not None
    sentinels, margins = denoiser.sentinels.scored(labels), denoiser.ledger.values
    planted = Counterfactual.from_losses(sentinels.scores, "sentinels")
    threshold, _ = cut_by_sentinels(margins, planted, 6.0, 5)
    without = margins >= threshold
    found = ~denoiser._judge(nn.Identity()).keep
    before, after = (float(mask[confused].float().mean()) for mask in (without, found))
    assert before < 0.2
    assert after > before + gain
    assert f1(found, wrong) > f1(without, wrong) + gain / 4
    assert wrong[found].float().mean() > 0.95


def f1(found: Tensor, wrong: Tensor) -> float:
    return 2 * int((found & wrong).sum()) / int(found.sum() + wrong.sum())
