"""The Denoiser on a GPU: nothing waits, bad indices come out later, the verdict is the same."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from oddly.core.rule import PERCENTILES
from tests.core.toy import D, K, N, Toy, make

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("counterfactual", PERCENTILES)
@pytest.mark.parametrize("host", [True, False])
def test_no_step_waits_for_the_gpu(host: bool, counterfactual: str) -> None:
    """The first step lays tensors out; from the second on nothing may synchronise."""
    toy, denoiser = Toy(), make(prune_after=2, counterfactual=counterfactual)
    index, labels = (torch.arange(N), toy.labels)
    if host:  # as a DataLoader with pin_memory hands them over
        index, labels = index.pin_memory(), labels.pin_memory()
    else:
        index, labels = index.cuda(), labels.cuda()
    logits = toy.model(0)(toy.inputs).detach().cuda()
    on_gpu = index.cuda(), labels.cuda()  # planted after the transfer, as the engine does
    denoiser.observe(index, logits, denoiser.plant(*on_gpu))
    with waiting_forbidden():
        denoiser.observe(index, logits, denoiser.plant(*on_gpu))
        denoiser.observe(index, logits, labels)


@contextmanager
def waiting_forbidden() -> Iterator[None]:
    """Any wait for the GPU raises."""
    with warnings.catch_warnings():  # "a prototype feature"
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_waiting_would_be_noticed() -> None:
    with waiting_forbidden(), pytest.raises(RuntimeError, match="synchronizing"):
        torch.zeros(1, device="cuda").item()


@pytest.mark.parametrize("counterfactual", PERCENTILES)
def test_on_a_gpu_a_bad_index_is_reported_by_end_epoch(counterfactual: str) -> None:
    denoiser = make(counterfactual=counterfactual)
    index = torch.tensor([0, N, -1], device="cuda")
    logits, labels = torch.zeros(3, K, device="cuda"), torch.zeros(3, dtype=torch.int64).cuda()
    denoiser.observe(index, logits, denoiser.plant(index, labels))
    with pytest.raises(IndexError, match=r"2 indices given to observe\(\) were outside 0\.\.59"):
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
    assert on_gpu.verdict.threshold == pytest.approx(on_cpu.verdict.threshold)
    torch.testing.assert_close(on_gpu.verdict.scores, on_cpu.verdict.scores)
    torch.testing.assert_close(on_gpu.verdict.losses, on_cpu.verdict.losses)  # on the CPU, both
    assert on_gpu.seconds > 0
