"""Joint optimisation: the loss by hand, the average of outputs against a loop."""

from __future__ import annotations

import math

import pytest
import torch

from oddly.methods.joint_opt import JointOpt
from tests.methods.toy import go_to, log_odds, make_batch, make_context, step


def test_the_loss_by_hand() -> None:
    method, context = JointOpt(alpha=2.0, beta=3.0), make_context([0, 1], 2)
    method.setup(context)
    loss = step(method, context, make_batch(log_odds([0.9, 0.1], [0.3, 0.7]), [0, 1])).loss
    fit = -(math.log(0.9) + math.log(0.7)) / 2  # KL to one-hot labels
    spread = -(math.log(0.6) + math.log(0.4)) / 2  # mean p = (.6, .4), prior ½ each
    entropy = -sum(p * math.log(p) for p in (0.9, 0.1, 0.3, 0.7)) / 2
    assert loss.item() == pytest.approx(fit + 2 * spread + 3 * entropy, rel=1e-5)


def test_labels_become_the_average_of_outputs() -> None:
    generator = torch.Generator().manual_seed(0)
    method, context = JointOpt(window=4, start=0.5), make_context([0, 1, 2], 3, epochs=10)
    method.setup(context)
    first, second = method.stages(10)
    go_to(context, first, 0)
    method.begin_stage(context)
    seen = []
    for epoch in range(10):
        logits = torch.randn(3, 3, generator=generator)
        seen.append(logits.softmax(1))
        step(method, context, make_batch(logits, [0, 1, 2]))
        weights = [0.25 * 0.75 ** (epoch - t) for t in range(epoch + 1)]
        mean = sum(w * p for w, p in zip(weights, seen, strict=True)) / sum(weights)
        expected = mean if epoch + 1 >= 5 else torch.eye(3)
        torch.testing.assert_close(method.labels, expected, rtol=1e-4, atol=1e-5)
    method.end_stage(context)
    assert method.verdict is not None
    assert method.verdict.keep.tolist() == (method.labels.argmax(1) == torch.arange(3)).tolist()
    go_to(context, second, 1)
    method.begin_stage(context)
    before = method.labels.clone()
    step(method, context, make_batch(logits, [0, 1, 2]))
    assert torch.equal(method.labels, before)  # step 2 leaves them
    assert (second.epochs, second.fresh, first.schedule) == (6, True, "constant")
