"""The mixture split, sharpening and the mixed loss."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from oddly.methods.divide_mix import DivideMix, clean_probabilities, sharpen
from tests.methods.toy import log_odds, make_batch, make_context


def test_two_heaps_of_losses_are_told_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    low = 0.2 + 0.05 * torch.randn(60, generator=generator)
    high = 2.0 + 0.3 * torch.randn(40, generator=generator)
    w = clean_probabilities(torch.cat([low, high]))
    assert w[:60].min() > 0.99 and w[60:].max() < 0.01


def test_equal_losses_break_nothing() -> None:
    assert clean_probabilities(torch.ones(5)).isfinite().all()


def test_sharpen_by_hand() -> None:
    assert sharpen(torch.tensor([[0.6, 0.4]])).tolist()[0] == pytest.approx([36 / 52, 16 / 52])


def test_the_mixed_loss_without_mixing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With share 1 nothing is mixed: cross-entropy on the believed, distance on the others."""
    monkeypatch.setattr(torch.distributions.Beta, "sample", lambda self: torch.tensor(1.0))
    method, context = DivideMix(), make_context([0, 1], 2)
    method.setup(context)
    method.clean = torch.tensor([[0.0, 0.8], [0.0, 0.3]])
    method.weight = 5.0
    views = (log_odds([0.7, 0.3], [0.4, 0.6]), log_odds([0.6, 0.4], [0.5, 0.5]))
    own = torch.tensor([[0.65, 0.35], [0.45, 0.55]])
    both = torch.tensor([[0.5, 0.5], [0.2, 0.8]])
    batch = make_batch(views[0], [0, 1], views[1])
    found = method.mixed_loss(context.model, batch, views, own, both, 1)
    believed = sharpen(torch.tensor([[0.8 + 0.2 * 0.65, 0.2 * 0.35]]))
    guessed = sharpen(both[1:])
    p = [view.softmax(1) for view in views]
    fit = -sum((believed * each[0].log()).sum() for each in p) / 2
    distance = sum(((each[1] - guessed) ** 2).mean() for each in p) / 2
    mean = torch.cat(p).mean(0)
    spread = (0.5 * (0.5 / mean).log()).sum()
    assert found.item() == pytest.approx(float(fit + 5 * distance + spread), rel=1e-4)


def test_each_network_takes_the_others_split() -> None:
    method, context = DivideMix(warmup=0), make_context([0, 0, 0, 0], 2)
    method.setup(context)
    answers = {
        id(context.model): torch.tensor([0.9, 0.9, 0.1, 0.1]),
        id(method.second): torch.tensor([0.9, 0.1, 0.1, 0.1]),
    }
    context.probabilities = lambda model: torch.stack(
        [answers[id(model)], 1 - answers[id(model)]], 1
    )
    method.begin_epoch(context)
    assert (method.clean[:, 0] > 0.5).tolist() == [True, True, False, False]
    assert (method.clean[:, 1] > 0.5).tolist() == [True, False, False, False]


def test_warm_up_is_plain_training_of_both() -> None:
    method, context = DivideMix(warmup=2), make_context([0, 1], 2)
    method.setup(context)
    method.begin_epoch(context)
    batch = make_batch(torch.randn(2, 2), [0, 1], torch.randn(2, 2))
    expected = 2 * F.cross_entropy(batch.inputs, batch.labels)
    torch.testing.assert_close(method.loss(context.model, batch).loss, expected)
