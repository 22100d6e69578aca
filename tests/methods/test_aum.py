"""Margins by hand, and who is suspected by both runs."""

from __future__ import annotations

import pytest
import torch

from oddly.errors import InputError
from oddly.methods.aum import AUM, margins
from oddly.methods.base import Batch
from tests.methods.toy import go_to, make_context


def test_margins_by_hand() -> None:
    logits = torch.tensor([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0], [0.0, 0.0, 5.0]])
    assert margins(logits, torch.tensor([0, 1, 2])).tolist() == [1, -2, 5]


def test_two_runs_and_their_judgement() -> None:
    """20 examples, 2 classes: half of them moved in each run, so that each is judged once."""
    method, context = AUM(), make_context([0, 1] * 10, 2, epochs=8)
    method.setup(context)
    stages = method.stages(4)
    assert [(s.epochs, s.extra_outputs, s.fresh) for s in stages] == [
        *((2, 1, True), (2, 1, True), (4, 0, True))
    ]
    labels = context.given_labels
    logits = torch.zeros(20, 3)
    logits[torch.arange(20), labels] = 4.0
    logits[[3, 8], labels[[3, 8]]] = -4.0  # wrong ones: margin -4
    logits[:, 2] = -3.0  # a moved example has margin -3 - 4 = -7 or, of those two, -3
    moved = []
    for number, stage in enumerate(stages[:2]):
        go_to(context, stage, number)
        method.begin_stage(context)
        moved.append(method.moved.clone())
        for epoch in range(2):
            context.stage_epoch = epoch
            method.begin_epoch(context)
            noise = 100.0 * (epoch == 0)  # the first epoch does not count
            method.loss(torch.nn.Identity(), Batch(torch.arange(20), logits + noise, labels))
            context.stage_epoch, context.epoch = epoch + 1, context.epoch + 1
            method.end_epoch(context)
        method.end_stage(context)
    assert not (moved[0] & moved[1]).any() and (moved[0] | moved[1]).all()
    assert method.verdict is not None
    # Where the moved set holds a wrong one its percentile is -3, and -4 < -3 is suspicious.
    expected = [not _suspected(i, moved) for i in range(20)]
    assert sum(expected) < 20
    assert method.verdict.keep.tolist() == expected
    go_to(context, stages[2], 2)
    method.begin_stage(context)
    assert context.sampler.num_kept == sum(expected)


def _suspected(i: int, moved: list[torch.Tensor]) -> bool:
    """An example is judged by the run in which it was not moved."""
    judge = moved[0] if not moved[0][i] else moved[1]
    threshold = -3.0 if bool(judge[3] or judge[8]) else -7.0
    return (-4.0 if i in (3, 8) else 4.0) < threshold


def test_relabelled_examples_train_on_the_extra_class() -> None:
    method, context = AUM(), make_context([0, 1, 0, 1], 2)
    method.setup(context)
    go_to(context, method.stages(4)[0], 0)
    method.begin_stage(context)
    logits = torch.zeros(4, 3)
    logits[:, 2] = 50.0
    loss = method.loss(torch.nn.Identity(), Batch(torch.arange(4), logits, context.given_labels))
    assert loss.loss.item() == pytest.approx(50 * 2 / 4)  # two of four are moved: loss 0


def test_fewer_examples_than_classes_are_too_few() -> None:
    with pytest.raises(InputError, match="got 2 examples of 3 classes"):
        AUM().setup(make_context([0, 1], 3, epochs=4))
