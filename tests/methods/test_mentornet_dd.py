"""Trusted examples watched under their given labels, and the mentor's say in the second stage."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from oddly.errors import InputError
from oddly.methods import Batch, Context
from oddly.methods.mentornet_dd import LearntMentorNet
from tests.methods.toy import go_to, log_odds, make_batch, make_context, step


class TwoTrusted:
    """Both of class 0; the data called the second one 1."""

    labels, given_labels = torch.tensor([0, 0]), torch.tensor([0, 1])

    def __len__(self) -> int:
        return 2

    def draw(self, size: int) -> Batch:
        assert size == 1  # two trusted for four others: every second batch example's worth
        return Batch(torch.tensor([1]), log_odds([0.8, 0.2]), torch.tensor([0]))

    def features(self, model: nn.Module) -> Tensor:
        raise NotImplementedError


def begin(epochs: int = 4) -> tuple[LearntMentorNet, Context]:
    method = LearntMentorNet(percentile=50, decay=0, first_share=0.5, steps=5)
    first, _ = method.stages(epochs)
    context = make_context([0, 0, 1, 1], 2, epochs=first.epochs + epochs)
    go_to(context, first, 0)
    context.trusted = TwoTrusted()
    method.setup(context)
    return method, context


def test_trusted_examples_train_under_their_given_labels() -> None:
    method, context = begin()
    output = step(method, context, make_batch(log_odds([0.5, 0.5], [0.9, 0.1]), [0, 0]))
    losses = torch.tensor([0.5, 0.9, 0.2]).log().neg()  # the trusted one as class 1
    assert output.logits is not None and len(output.logits) == 2
    kept = sorted((losses / 3).tolist())  # a half is dropped at random: one of three stays
    assert any(output.loss.item() == pytest.approx(value) for value in kept)
    pair = [losses[2].item(), (losses[2] - losses.median()).item()]
    assert method.sightings[0, 1].tolist() == pytest.approx(pair)
    assert method.sightings[0, 0].isnan().all() and method.sightings[1].isnan().all()


def test_the_mentor_weighs_the_second_stage() -> None:
    method, context = begin()
    batch = make_batch(log_odds([0.5, 0.5], [0.9, 0.1]), [0, 0])
    for _ in range(2):
        step(method, context, batch)
    before = method.mentor.out.weight.detach().clone()
    method.end_stage(context)
    assert not torch.equal(before, method.mentor.out.weight)
    go_to(context, method.stages(4)[1], 1)
    step(method, context, batch)  # the burn-in: all weights are 1, and none is counted
    assert not method.seen.any()
    step(method, context, batch)
    losses = torch.tensor([0.5, 0.9]).log().neg()
    labels = torch.tensor([0, 0])
    # Watched in 2 of 4 epochs, so it has heard of 18 % and is told that for ever.
    middle = losses.quantile(0.5)
    expected = method.mentor(losses, losses - middle, labels, labels + 18).sigmoid()
    assert method.sums[:2].tolist() == pytest.approx(expected.tolist(), abs=1e-6)
    assert method.seen.tolist() == [1, 1, 0, 0]


def test_what_it_says_of_the_epoch() -> None:
    method, context = begin(40)
    assert method.percents[:3] == [0, 2, 5] and method.percents[-1] == 18
    assert method.percent(0.9) == 18


def test_bad_settings() -> None:
    with pytest.raises(InputError, match="least_wrong and first_share must be within"):
        LearntMentorNet(least_wrong=2)
