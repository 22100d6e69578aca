from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from oddly.models.dropout import LEVELS, ByteDropout, drop, random_bytes
from oddly.models.wide_resnet import WideResNet

CPU = torch.device("cpu")


def ones(device: str = "cpu") -> Tensor:
    return torch.ones(8, 40, 16, 16, device=device).to(memory_format=torch.channels_last)


def test_as_many_are_dropped_as_asked_for_and_the_mean_stays() -> None:
    torch.manual_seed(0)
    out = drop(ones(), 77, layer=0)
    assert (out == 0).float().mean().item() == pytest.approx(77 / 256, abs=0.005)
    assert out.unique().tolist() == [0, pytest.approx(256 / 179)]
    assert out.mean().item() == pytest.approx(1, abs=0.01)
    assert out.is_contiguous(memory_format=torch.channels_last)


def test_what_is_dropped_gets_no_gradient() -> None:
    x = ones().requires_grad_()
    out = drop(x, 128, layer=0)
    out.sum().backward()
    assert x.grad is not None and torch.equal(x.grad, out.detach())


def test_the_seed_decides_and_no_two_calls_are_alike() -> None:
    torch.manual_seed(3)
    first, second = drop(ones(), 128, layer=0), drop(ones(), 128, layer=0)
    torch.manual_seed(3)
    assert torch.equal(drop(ones(), 128, layer=0), first)
    assert 0.45 < (first == second).float().mean().item() < 0.55


@pytest.mark.parametrize("x", [ones(), torch.ones(64, 3), torch.ones(4, 8, 6, 6)])
def test_off_a_gpu_it_is_the_original(x: Tensor) -> None:
    torch.manual_seed(1)
    ours = ByteDropout(0.5, layer=0)(x)
    torch.manual_seed(1)
    original = nn.Dropout(0.5)(x)
    assert torch.equal(ours, original) and ours.stride() == original.stride()


def test_every_level_of_the_bytes_is_as_likely() -> None:
    torch.manual_seed(0)
    drawn = random_bytes((16, 64, 16, 16), CPU, 0)
    assert drawn.dtype == torch.uint8 and drawn.shape == (16, 64, 16, 16)
    share = drawn.flatten().bincount(minlength=256) / drawn.numel()
    assert share.min() > 0.85 / 256 and share.max() < 1.15 / 256  # 1,024 of each
    assert random_bytes((1, 3, 1, 1), CPU, 0).shape == (1, 3, 1, 1)  # no whole word


def test_the_compiler_is_told_the_truth_about_it() -> None:
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(random_bytes, ((2, 3, 5, 7), CPU, 0), test_utils=checks)


def test_no_two_blocks_of_a_network_have_the_same_number() -> None:
    model = WideResNet(16, 1, num_classes=3, dropout=0.3)
    numbers = [m.layer for m in model.modules() if isinstance(m, ByteDropout)]
    assert numbers == list(range(6))


class TwoLayers(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return drop(x, 128, 0), drop(x, 128, 1)


@pytest.mark.slow
def test_compiled_it_draws_what_it_draws_uncompiled_each_time_anew() -> None:
    model = TwoLayers()
    compiled = torch.compile(model)
    x = ones().requires_grad_()
    torch.manual_seed(5)
    plain = [model(x), model(x)]
    torch.manual_seed(5)
    fused = [compiled(x), compiled(x)]
    for ours, theirs in zip(plain, fused, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    (one, two), (again, _) = fused
    assert not torch.equal(one, two)  # not taken for one, though they ask for the same shape
    assert not torch.equal(one, again)
    (gradient,) = torch.autograd.grad(one.sum(), x)
    assert torch.equal(gradient, one.detach())


@pytest.mark.gpu
def test_on_a_gpu_it_takes_bytes_and_cuda_graphs_draw_anew() -> None:
    dropout, x = ByteDropout(0.3, layer=0), ones("cuda")
    assert dropout(x).unique().tolist() == [0, pytest.approx(LEVELS / 179)]
    compiled = torch.compile(dropout, mode="reduce-overhead")
    drawn = []
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        drawn.append(compiled(x).clone())
    assert not torch.equal(drawn[2], drawn[3])
