"""Probabilities and features of a whole split, against the network called by hand."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from oddly.engine import table
from oddly.engine.build import build
from oddly.engine.config import RunConfig
from oddly.errors import InputError


def test_against_the_network_itself() -> None:
    parts = build(RunConfig("synthetic", method="erm", batch_size=50))
    model, context = parts.model, parts.context
    parts.train_feed.batch_size = 120
    _, (inputs,), _ = next(iter(parts.train_feed.batches(torch.arange(120))))
    parts.train_feed.batch_size = 50
    model.train()
    probabilities, features = context.probabilities(model), context.features(model)
    assert model.training  # as it was
    with torch.no_grad():
        logits = model.eval()(inputs)
    torch.testing.assert_close(probabilities, logits.softmax(1), atol=1e-6, rtol=1e-5)
    head = F.linear(features, model.fc.weight, model.fc.bias)  # type: ignore[union-attr, arg-type]
    torch.testing.assert_close(head, logits, atol=1e-5, rtol=1e-5)
    assert not model.fc._forward_pre_hooks  # type: ignore[union-attr]


def test_one_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = build(RunConfig("synthetic", method="erm", device="cpu"))
    monkeypatch.setattr(table, "free_memory", lambda device: 1_000)
    with pytest.raises(InputError, match=r"a pass over all examples stores 120 x 3 numbers: 1.44"):
        parts.context.probabilities(parts.model)
