"""Generalised cross-entropy: values and gradients by hand, and what truncation leaves out."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from oddly.errors import InputError
from oddly.methods.gce import GCE, TruncatedGCE
from tests.methods.toy import log_odds, make_batch, make_context, step


def test_values_by_hand() -> None:
    method, context = GCE(q=0.5), make_context([0, 1], 2)
    method.setup(context)
    batch = make_batch(log_odds([0.25, 0.75], [0.19, 0.81]), [0, 1])
    # (1 - sqrt(.25)) / .5 = 1, (1 - sqrt(.81)) / .5 = 0.2
    assert step(method, context, batch).loss.item() == pytest.approx(0.6)


@pytest.mark.parametrize("q", [0.1, 0.7, 1.0])
def test_the_gradient_is_cross_entropys_times_p_to_the_q(q: float) -> None:
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 2, 3, 0])
    weights = logits.softmax(1)[torch.arange(5), labels] ** q
    ours, plain = (logits.clone().requires_grad_() for _ in range(2))
    p = ours.softmax(1)[torch.arange(5), labels]
    GCE(q=q).from_probabilities(p, torch.arange(5)).sum().backward()
    F.cross_entropy(plain, labels, reduction="sum").backward()
    assert ours.grad is not None and plain.grad is not None
    torch.testing.assert_close(ours.grad, weights[:, None] * plain.grad)


def test_the_judgement_at_the_end() -> None:
    method, context = GCE(), make_context([0, 0, 1], 2, epochs=1)
    method.setup(context)
    step(method, context, make_batch(log_odds([0.9, 0.1], [0.4, 0.6], [0.5, 0.5]), [0, 0, 1]))
    assert method.verdict is not None
    assert method.verdict.keep.tolist() == [True, False, False]
    assert method.verdict.scores.tolist() == pytest.approx([0.1, 0.6, 0.5])


def test_truncation_leaves_out_what_the_sweep_disbelieves() -> None:
    swept = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    method = TruncatedGCE(q=1.0, cut=0.5, start=1, every=1)
    context = make_context([0, 0, 1], 2, epochs=2, probabilities=swept)
    method.setup(context)
    batch = make_batch(log_odds([0.9, 0.1], [0.2, 0.8], [0.3, 0.7]), [0, 0, 1])
    # L_1(p) - L_1(½) = ½ - p: first epoch all, second only examples 0 and 2
    assert step(method, context, batch).loss.item() == pytest.approx((-0.4 + 0.3 - 0.2) / 3)
    assert step(method, context, batch).loss.item() == pytest.approx((-0.4 - 0.2) / 3)
    assert method.verdict is not None and method.verdict.keep.tolist() == [True, False, True]


def test_a_class_not_learnt_yet_keeps_its_weights() -> None:
    swept = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.7, 0.3]])
    method = TruncatedGCE(start=1, every=1)
    context = make_context([0, 0, 1, 1], 2, probabilities=swept)
    method.setup(context)
    context.epoch = 1
    method.begin_epoch(context)
    assert method.weights.tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize("settings", [{"q": 0.0}, {"q": 1.5}, {"cut": 0.0}, {"cut": 1.0}])
def test_bad_settings(settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"gce's {next(iter(settings))} must be"):
        GCE(**settings)
