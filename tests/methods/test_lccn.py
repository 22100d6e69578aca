"""Latent labels: their counts stay theirs, and T follows."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from oddly.methods.base import Batch
from oddly.methods.lccn import LCCN
from tests.methods.toy import go_to, make_context


def recount(method: LCCN, labels: torch.Tensor) -> torch.Tensor:
    counts = torch.zeros(3, 3, dtype=torch.int64)
    for z, y in zip(method.latent.tolist(), labels.tolist(), strict=True):
        counts[z, y] += 1
    return counts


def test_counts_stay_consistent_with_the_labels() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(40, 3, generator=generator)
    labels = torch.randint(3, (40,), generator=generator)
    method = LCCN()
    context = make_context(labels.tolist(), 3, epochs=8, probabilities=logits.softmax(1))
    method.setup(context)
    plain, latent = method.stages(8)
    go_to(context, plain, 0)
    method.begin_stage(context)
    method.end_stage(context)
    assert torch.equal(method.latent, logits.argmax(1))
    assert torch.equal(method.counts, recount(method, labels))
    fixed = method.matrix.clone()
    go_to(context, latent, 1)
    method.begin_stage(context)
    torch.manual_seed(1)
    for epoch in range(8):
        for part in torch.arange(40).split(16):  # the last one is smaller
            method.loss(context.model, Batch(part, logits[part], labels[part]))
        context.stage_epoch = epoch + 1
        method.end_epoch(context)
        assert torch.equal(method.counts, recount(method, labels))
        if epoch < 3:  # 0.4 of 8 epochs, rounded up: T stays as it was estimated
            assert torch.equal(method.matrix, fixed)
    torch.testing.assert_close(method.matrix, F.normalize(method.counts + 1.0, p=1, dim=1))


def test_a_sure_network_and_no_noise_keep_the_labels() -> None:
    labels = torch.tensor([0, 1, 2])
    method, context = LCCN(), make_context([0, 1, 2], 3)
    method.setup(context)
    method.sampling = True
    method.count(method.latent, labels, 1)
    method.loss(context.model, Batch(torch.arange(3), 50 * torch.eye(3), labels))
    assert torch.equal(method.latent, labels) and method.beliefs.tolist() == [1, 1, 1]
