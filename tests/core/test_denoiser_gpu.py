"""The Denoiser on a GPU: nothing waits, bad indices come out later, the verdict is the same."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from oddly.core import backlog
from oddly.core.rule import PERCENTILES
from tests.core.toy import D, K, N, Toy, make
from tests.waiting import waiting_forbidden

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("counterfactual", PERCENTILES)
@pytest.mark.parametrize("host", [True, False])
@pytest.mark.parametrize("enough", [1, 2 * N, 10 * N])
@pytest.mark.filterwarnings("ignore:.*without the end of an epoch")  # six rounds are one epoch here
def test_no_step_waits_for_the_gpu(
    host: bool, counterfactual: str, enough: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noted at once, in rounds of two or not at all before the epoch ends.

    The first round lays tensors out; from the second on nothing may synchronise.
    """
    monkeypatch.setattr(backlog, "ROUND", enough)
    toy, denoiser = Toy(), make(prune_after=2, counterfactual=counterfactual)
    index, labels = (torch.arange(N), toy.labels)
    if host:  # as a DataLoader with pin_memory hands them over
        index, labels = index.pin_memory(), labels.pin_memory()
    else:
        index, labels = index.cuda(), labels.cuda()
    logits = toy.model(0)(toy.inputs).detach().cuda()
    on_gpu = index.cuda(), labels.cuda()  # planted after the transfer, as the engine does
    for _ in range(2):
        denoiser.observe(index, logits, denoiser.plant(*on_gpu))
    with waiting_forbidden():
        for _ in range(3):
            denoiser.observe(index, logits, denoiser.plant(*on_gpu))
        denoiser.observe(index, logits, labels)


@pytest.mark.parametrize("counterfactual", PERCENTILES)
def test_logits_may_be_overwritten_by_the_next_step(counterfactual: str) -> None:
    """As a CUDA graph's are: every replay writes to the same memory."""
    toy, model = Toy(), Toy().model(0)
    fresh, reused = (make(counterfactual=counterfactual) for _ in range(2))
    buffers = [torch.zeros(20, dtype=torch.int64).cuda(), torch.zeros(20, K).bfloat16().cuda()]
    buffers.append(torch.zeros_like(buffers[0]))
    for index in torch.arange(N).cuda().split(20):
        given = toy.labels.cuda()[index]
        logits = model(toy.inputs[index.cpu()]).detach().bfloat16().cuda()
        fresh.observe(index, logits, fresh.plant(index, given))
        for buffer, value in zip(buffers, (index, logits, reused.plant(index, given)), strict=True):
            buffer.copy_(value)
        reused.observe(*buffers)
    for denoiser in (fresh, reused):
        denoiser.state_dict()  # notes what waits
    torch.testing.assert_close(fresh.ledger.current, reused.ledger.current)
    assert not fresh.ledger.current.isnan().any()


def test_waiting_would_be_noticed() -> None:
    with waiting_forbidden(), pytest.raises(RuntimeError, match="synchronizing"):
        torch.zeros(1, device="cuda").item()


@pytest.mark.parametrize("counterfactual", PERCENTILES)
def test_on_a_gpu_a_bad_index_is_reported_by_end_epoch(counterfactual: str) -> None:
    denoiser = make(counterfactual=counterfactual)
    index = torch.tensor([0, N, -1], device="cuda")
    logits, labels = torch.zeros(3, K, device="cuda"), torch.zeros(3, dtype=torch.int64).cuda()
    denoiser.observe(index, logits, denoiser.plant(index, labels))
    with pytest.raises(IndexError, match=r"2 indices passed to observe\(\) are outside 0\.\.59"):
        denoiser.end_epoch(nn.Linear(D, K))


@pytest.mark.parametrize("counterfactual", PERCENTILES)
def test_on_a_gpu_the_verdict_is_the_same(counterfactual: str) -> None:
    toy = Toy()
    on_cpu, on_gpu = (make(counterfactual=counterfactual) for _ in range(2))
    toy.run(on_cpu, 3)
    for epoch in range(3):
        model = toy.model(epoch).cuda()
        denoised = torch.tensor(list(on_gpu.sampler))
        labels = on_gpu.plant(denoised, toy.labels[denoised])
        on_gpu.observe(denoised, model(toy.inputs[denoised].cuda()), labels)
        on_gpu.end_epoch(model)
    assert on_gpu.verdict is not None
    assert on_cpu.verdict is not None
    assert torch.equal(on_gpu.verdict.keep, on_cpu.verdict.keep)
    # q_n is drawn on the head's device, and no two kinds of device draw alike.
    within = 0.1 if counterfactual == "weights" else 1e-5
    assert on_gpu.verdict.threshold == pytest.approx(on_cpu.verdict.threshold, rel=within)
    torch.testing.assert_close(on_gpu.verdict.scores, on_cpu.verdict.scores)
    torch.testing.assert_close(on_gpu.verdict.losses, on_cpu.verdict.losses)  # on the CPU, both
    assert on_gpu.seconds > 0
