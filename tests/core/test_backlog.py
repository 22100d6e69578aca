from __future__ import annotations

import pytest
import torch

from oddly.core import Denoiser
from oddly.core import backlog as module
from oddly.core.backlog import Backlog


def test_batches_come_back_as_one_in_order() -> None:
    backlog = Backlog()
    assert backlog.take() is None
    logits = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.bfloat16)
    index, labels = torch.tensor([4, 1]), torch.tensor([0, 1])
    backlog.add(index, logits, labels)
    for buffer in (index, logits, labels):
        buffer.zero_()  # as the next step of a CUDA graph does
    backlog.add(torch.tensor([2]), torch.tensor([[5.0, 6.0]]), torch.tensor([1]))
    taken = backlog.take()
    assert taken is not None
    index, seen, labels = taken
    assert index.tolist() == [4, 1, 2]
    assert seen.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert seen.dtype == torch.float32
    assert labels.tolist() == [0, 1, 1]
    assert backlog.take() is None


def test_it_says_when_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROUND", 3)
    backlog = Backlog()
    batch = torch.tensor([0, 1]), torch.zeros(2, 2), torch.zeros(2, dtype=torch.int64)
    assert [backlog.add(*batch), backlog.add(*batch)] == [False, True]
    backlog.take()
    assert not backlog.add(*batch)


@pytest.mark.parametrize("counterfactual", ["sentinels", "weights", "wrong_label"])
def test_put_aside_or_noted_at_once_the_ledger_is_the_same(counterfactual: str) -> None:
    def make() -> Denoiser:
        return Denoiser(400, 5, prune_after=3, counterfactual=counterfactual)

    at_once, later = make(), make()
    generator = torch.Generator().manual_seed(1)
    for part in torch.randperm(400, generator=generator).split(64):
        logits = torch.randn(len(part), 5, generator=generator)
        given = part % 5
        labels = at_once.plant(part, given)
        assert torch.equal(labels, later.plant(part, given))
        at_once.observe(part, logits, labels)
        later._backlog.add(part, logits, labels)  # as `observe` does on a GPU
    assert later.ledger.current.isnan().all()
    later.state_dict()  # a checkpoint must hold what waits
    assert torch.equal(later.ledger.current, at_once.ledger.current)
    seen, expected = (each._observed["labels"] for each in (later, at_once))
    assert torch.equal(seen, expected)


def test_what_waits_is_dropped_with_the_run_it_belongs_to() -> None:
    denoiser = Denoiser(400, 5, prune_after=3, counterfactual="weights")
    saved = denoiser.state_dict()
    part = torch.arange(4)
    denoiser._backlog.add(part, torch.zeros(4, 5), part)
    denoiser.load_state_dict(saved)
    assert denoiser._backlog.take() is None
