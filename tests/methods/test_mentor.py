"""The mentor against a slow NumPy twin, what it learns, and the labels that are planted for it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from oddly.methods.mentor import Mentor, plant_wrong, teach

Array = NDArray[np.float64]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def read_slowly(mentor: Mentor, pair: tuple[float, float], ending: str) -> float:
    """The last output of an LSTM of size 1 over the pair; gates in torch's order i, f, g, o."""
    weights = {name: w.detach().double().numpy() for name, w in mentor.read.named_parameters()}
    h = c = 0.0
    for x in pair:
        gates = weights[f"weight_ih_l0{ending}"][:, 0] * x + weights[f"bias_ih_l0{ending}"]
        gates = gates + weights[f"weight_hh_l0{ending}"][:, 0] * h + weights[f"bias_hh_l0{ending}"]
        i, f, o = sigmoid(gates[[0, 1, 3]])
        c = f * c + i * np.tanh(gates[2])
        h = o * np.tanh(c)
    return h


def test_the_network_by_hand() -> None:
    torch.manual_seed(0)
    mentor = Mentor(3)
    torch.nn.init.normal_(mentor.labels.weight)
    loss, above, label, percent = 1.7, -0.4, 2, 18
    seen = [read_slowly(mentor, (loss, above), ""), read_slowly(mentor, (above, loss), "_reverse")]
    parts = (mentor.labels.weight[label], mentor.percents[percent])
    features = np.concatenate([seen, *(part.detach().numpy() for part in parts)])
    hidden, out = (
        (layer.weight.detach().numpy(), layer.bias.detach().numpy())
        for layer in (mentor.hidden, mentor.out)
    )
    expected = out[0] @ np.tanh(hidden[0] @ features + hidden[1]) + out[1]
    said = mentor(*(torch.tensor([value]) for value in (loss, above, label, percent)))
    assert said.tolist() == pytest.approx(expected.tolist(), rel=1e-5)


def test_it_learns_which_losses_are_those_of_wrong_labels() -> None:
    generator = torch.Generator().manual_seed(0)
    right = torch.rand(500, generator=generator) < 0.7
    losses = torch.rand(500, generator=generator) + 2.0 * ~right
    nothing = torch.zeros(500, dtype=torch.int64)
    torch.manual_seed(0)
    mentor = Mentor(2)
    before = mentor.percents.clone()
    teach(mentor, losses, losses - 1, nothing, nothing, right, 300, 0.01, generator)
    weights = mentor(losses, losses - 1, nothing, nothing).sigmoid()
    assert weights[right].min() > 0.9 and weights[~right].max() < 0.1
    assert torch.equal(mentor.percents, before)  # the epochs' vectors are not trained
    assert not mentor.labels.weight[1].any()  # a class that was never seen has no say


@pytest.mark.parametrize(
    ("wrong", "least", "expected"), [(0, 0.2, 20), (15, 0.2, 20), (30, 0.2, 30)]
)
def test_wrong_labels_are_planted_where_there_are_too_few(
    wrong: int, least: float, expected: int
) -> None:
    true = torch.arange(100) % 4
    given = true.clone()
    given[:wrong] = (given[:wrong] + 1) % 4
    planted = plant_wrong(true, given, least, 4, torch.Generator().manual_seed(0))
    assert int((planted != true).sum()) == expected
    assert torch.equal(planted[:wrong], given[:wrong])  # the data's own stay
    assert int(planted.min()) >= 0 and int(planted.max()) < 4
