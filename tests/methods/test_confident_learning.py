"""Folds, and cleanlab's verdict on what they say."""

from __future__ import annotations

import pytest
import torch

from oddly.errors import InputError
from oddly.methods.confident_learning import ConfidentLearning
from tests.methods.toy import go_to, make_context


def test_every_example_is_asked_by_a_network_that_did_not_see_it() -> None:
    filter = pytest.importorskip("cleanlab.filter")
    generator = torch.Generator().manual_seed(0)
    true = torch.arange(60) % 3
    labels = true.clone()
    labels[:6] = (labels[:6] + 1) % 3
    p = (4 * torch.eye(3)[true] + torch.randn(60, 3, generator=generator)).softmax(1)
    context = make_context(labels.tolist(), 3, epochs=99)
    method = ConfidentLearning(folds=4)
    method.setup(context)
    stages = method.stages(3)
    assert [stage.passes for stage in stages] == [0.75] * 4 + [1.0]
    seen = torch.zeros(60)
    for number, stage in enumerate(stages[:4]):
        go_to(context, stage, number)
        context.sampler.set_keep(torch.ones(60, dtype=torch.bool))
        method.begin_stage(context)
        trained = torch.zeros(60, dtype=torch.bool).index_fill(0, context.sampler.order(), True)
        # a network says nothing but noise of what it was trained on
        context.probabilities = lambda _, index, t=trained: torch.where(t[:, None], 1 / 3, p)[index]
        method.end_stage(context)
        seen += ~trained
    assert seen.tolist() == [1] * 60
    torch.testing.assert_close(method.out_of_sample, p)
    issues = filter.find_label_issues(labels.numpy(), p.double().numpy(), n_jobs=1)
    assert method.verdict is not None and method.verdict.keep.tolist() == (~issues).tolist()
    assert (~method.verdict.keep[:6]).sum() >= 5
    go_to(context, stages[4], 4)
    method.begin_stage(context)
    assert context.sampler.num_kept == int(method.verdict.keep.sum())


def test_bad_folds() -> None:
    with pytest.raises(InputError, match="at least 2 folds, got 1"):
        ConfidentLearning(folds=1)
