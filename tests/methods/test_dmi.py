"""The determinant and its gradient."""

from __future__ import annotations

import math

import pytest
import torch

from oddly.errors import InputError
from oddly.methods.dmi import DMI, information_loss
from tests.methods.toy import log_odds, make_context


def test_the_determinant_by_hand() -> None:
    logits, labels = log_odds([0.9, 0.1], [0.6, 0.4], [0.2, 0.8]), torch.tensor([0, 0, 1])
    # U = [[1.5, .5], [.2, .8]], det 1.1
    expected = -math.log(1.5 * 0.8 - 0.5 * 0.2 + 0.001)
    assert information_loss(logits, labels).item() == pytest.approx(expected, rel=1e-5)


def test_the_gradient_against_finite_differences() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(9, 3, generator=generator).double().requires_grad_()
    labels = torch.arange(9) % 3
    assert torch.autograd.gradcheck(lambda z: information_loss(z, labels), logits)


def test_class_conditional_noise_only_shifts_it() -> None:
    """det(Y T)ᵀ P = det T · det Yᵀ P: with every label's noise written out as expected counts."""
    p = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]).double()
    given = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).double()
    noise = torch.tensor([[0.7, 0.3], [0.2, 0.8]]).double()
    clean, noisy = ((labels.T @ p).det() for labels in (given, given @ noise))
    assert noisy.item() == pytest.approx(clean.item() * noise.det().item())


def test_too_many_classes_for_the_batch_are_refused() -> None:
    context = make_context([0, 1, 2], 3)
    context.batch_size = 5
    with pytest.raises(InputError, match="3 classes in batches of 5; raise --batch-size"):
        DMI().setup(context)


def test_it_follows_plain_training() -> None:
    plain, informed = DMI(rate=0.01).stages(4)
    assert not informed.fresh and informed.rate == 0.01 and plain.epochs == informed.epochs == 4
