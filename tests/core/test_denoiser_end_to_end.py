"""Real training, as in the Denoiser's docstring: does it find the wrong labels by itself?"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from oddly.core import Denoiser, IndexedDataset, Verdict

SIZE, EPOCHS = 2000, 20


def make_blobs(num_classes: int, noise: float, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Points around the corners of a regular polygon, the labels given, and which are wrong."""
    generator = torch.Generator().manual_seed(seed)
    true = torch.arange(SIZE) % num_classes
    angle = true * (2 * torch.pi / num_classes)
    points = torch.stack((angle.cos(), angle.sin()), 1)
    points += 0.15 * torch.randn(SIZE, 2, generator=generator)
    wrong = torch.rand(SIZE, generator=generator) < noise
    shift = torch.randint(1, num_classes, (SIZE,), generator=generator)
    return points, torch.where(wrong, (true + shift) % num_classes, true), wrong


def train(
    points: Tensor, labels: Tensor, num_classes: int, seed: int
) -> tuple[Verdict, IndexedDataset]:
    torch.manual_seed(seed)
    dataset = IndexedDataset(TensorDataset(points, labels))
    denoiser = Denoiser(dataset, num_classes, epochs=EPOCHS, seed=seed)
    loader = DataLoader(dataset, 50, sampler=denoiser.sampler)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, num_classes))
    optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(EPOCHS):
        for inputs, given, index in loader:
            logits = model(inputs)
            denoiser.observe(index, logits, given)
            loss = F.cross_entropy(logits, given)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        denoiser.end_epoch(model)
    assert denoiser.verdict is not None
    return denoiser.verdict, dataset


@pytest.mark.slow
@pytest.mark.parametrize(("num_classes", "seed"), [(3, 0), (5, 1)])
def test_finds_three_wrong_labels_in_ten(num_classes: int, seed: int) -> None:
    points, labels, wrong = make_blobs(num_classes, 0.3, seed)
    verdict, dataset = train(points, labels, num_classes, seed)
    hits = int((~verdict.keep & wrong).sum())
    assert 2 * hits / (verdict.num_removed + int(wrong.sum())) > 0.9  # F1
    assert verdict.noise_rate is not None
    assert verdict.noise_rate[0] == pytest.approx(wrong.float().mean().item(), abs=0.05)
    assert torch.equal(verdict.labels.long(), labels)  # given ones, of sentinels too
    assert EPOCHS / 3 <= verdict.epoch <= 0.8 * EPOCHS
    assert [int(dataset[index][1]) for index in range(SIZE)] == labels.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("num_classes", "seed"), [(3, 0), (5, 1)])
def test_clean_data_stay_nearly_whole(num_classes: int, seed: int) -> None:
    points, labels, _ = make_blobs(num_classes, 0.0, seed)
    verdict, _ = train(points, labels, num_classes, seed)
    assert verdict.removed_fraction < 0.03
