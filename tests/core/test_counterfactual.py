"""q_n by hand, against the NumPy twin, and the percentiles made from it."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from oddly.core import Counterfactual, draw_losses
from oddly.core import counterfactual as module
from tests.reference import counterfactual as twin

ROOT = Path(__file__).resolve().parents[2]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def head(num_classes: int, features: int, bias: bool = True, scale: float = 1.0) -> nn.Linear:
    layer = nn.Linear(features, num_classes, bias=bias)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator(9)))
    return layer


def test_a_zero_head_gives_log_k_exactly() -> None:
    layer = nn.Linear(4, 10)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    losses = draw_losses(layer, 100, generator())
    assert losses.tolist() == pytest.approx([math.log(10)] * 100)


def test_a_head_of_bias_alone_by_hand() -> None:
    """Logits are always (log 6, log 3, log 1): losses log(10/6), log(10/3), log 10, ⅓ each."""
    layer = nn.Linear(4, 3)
    nn.init.zeros_(layer.weight)
    layer.bias.data = torch.tensor([6.0, 3.0, 1.0]).log()
    losses = draw_losses(layer, 3000, generator())
    for expected in (math.log(10 / 6), math.log(10 / 3), math.log(10)):
        share = (losses - expected).abs().lt(1e-5).float().mean().item()
        assert share == pytest.approx(1 / 3, abs=0.04)  # 4.6 standard deviations


def test_half_of_the_features_are_silenced_by_relu() -> None:
    """One feature, weights (1, -1): x ≤ 0 gives both logits 0, so half of the losses are log 2."""
    layer = nn.Linear(1, 2, bias=False)
    layer.weight.data = torch.tensor([[1.0], [-1.0]])
    losses = draw_losses(layer, 4000, generator())
    share = (losses - math.log(2)).abs().lt(1e-6).float().mean().item()
    assert share == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("num_classes", "features"), [(2, 3), (10, 16)])
def test_percentiles_match_the_twin(num_classes: int, features: int, bias: bool) -> None:
    layer = head(num_classes, features, bias, scale=0.5)
    fast = draw_losses(layer, 40_000, generator()).numpy()
    weight = layer.weight.detach().numpy()
    slow = twin.draw_losses(
        weight, layer.bias.detach().numpy() if bias else None, 8_000, np.random.default_rng(0)
    )
    at = [5, 10, 25, 50, 75, 90]
    np.testing.assert_allclose(
        np.percentile(fast, at), np.percentile(slow, at), atol=0.05 * slow.std(), rtol=0.03
    )


def test_same_generator_same_losses() -> None:
    layer = head(5, 8)
    first, second = draw_losses(layer, 50, generator(3)), draw_losses(layer, 50, generator(3))
    assert torch.equal(first, second)
    assert not torch.equal(first, draw_losses(layer, 50, generator(4)))


def test_a_generator_leaves_the_global_stream_alone() -> None:
    layer = head(5, 8)
    before = torch.random.get_rng_state()
    draw_losses(layer, 50, generator())
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_bf16_head_is_drawn_in_fp32_and_keeps_no_graph() -> None:
    losses = draw_losses(head(5, 8).to(torch.bfloat16), 50, generator())
    assert losses.dtype == torch.float32
    assert not losses.requires_grad


@pytest.mark.parametrize("draws", [1, 7, 8, 9, 100])
def test_chunks_add_up_to_the_number_of_draws(draws: int, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = head(5, 8)
    monkeypatch.setattr(module, "CHUNK_BYTES", 8 * 4 * (3 * 5 + 2 * 8))  # eight rows
    chunked = draw_losses(layer, draws, generator())
    assert chunked.shape == (draws,)
    assert chunked.unique().numel() == draws  # no chunk repeats another


class Sizes(TorchDispatchMode):
    """Writes down the size in bytes of every tensor that any operation returns."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.nbytes: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.nbytes |= {leaf.nbytes for leaf in tree_leaves(result) if isinstance(leaf, Tensor)}
        return result


def test_ten_thousand_classes_come_a_chunk_at_a_time() -> None:
    """On the meta device, where 1.6 TFLOP cost nothing; all at once: 800 MB of logits."""
    layer = nn.Linear(4096, 10_000, device="meta")
    with Sizes() as sizes:
        losses = draw_losses(layer, 20_000)
    assert losses.shape == (20_000,)
    made = sizes.nbytes - {layer.weight.nbytes}  # detached and transposed, never copied
    assert 2**22 < max(made) <= 2**26


MEMORY = """
import resource, torch
from oddly.core import draw_losses
torch.set_num_threads(1)
head = torch.nn.utils.skip_init(torch.nn.Linear, 4096, 10_000)
for parameter in head.parameters():
    torch.nn.init.zeros_(parameter)
draw_losses(head, 400, torch.Generator().manual_seed(0))  # one chunk, and what torch needs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
draw_losses(head, 4_000, torch.Generator().manual_seed(0))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux only")
def test_ten_thousand_classes_run_in_bounded_memory() -> None:
    """4,000 draws take hardly more than 400 do: memory does not grow with their number."""
    grown = []
    for _ in range(3):  # a busy machine hands out more at times, never less
        done = subprocess.run(
            [sys.executable, "-c", MEMORY], cwd=ROOT, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        grown.append(int(done.stdout))
    assert min(grown) <= 150  # MiB; 10 to 180 were measured, all at once: 330


@pytest.mark.parametrize("percentile", [0, 0.1, 10, 33.3, 50, 99.9, 100])
@pytest.mark.parametrize("draws", [1, 2, 11, 1000])
def test_threshold_is_numpys_percentile(percentile: float, draws: int) -> None:
    losses = torch.rand(draws, generator=generator()) * 5
    expected = np.percentile(losses.double().numpy(), percentile)
    found = Counterfactual.from_losses(losses, "weights").threshold(percentile)
    assert found == pytest.approx(expected, rel=1e-6)


def test_threshold_by_hand() -> None:
    counterfactual = Counterfactual.from_losses(torch.tensor([3.0, 1.0, 2.0]), "weights")
    assert counterfactual.losses.tolist() == [1.0, 2.0, 3.0]
    assert [counterfactual.threshold(p) for p in (0, 25, 50, 100)] == [1.0, 1.5, 2.0, 3.0]


def test_percentile_of_is_the_share_strictly_below() -> None:
    counterfactual = Counterfactual.from_losses(torch.tensor([1.0, 2.0, 2.0, 4.0]), "weights")
    losses = torch.tensor([0.5, 1.0, 2.0, 3.0, 4.0, 9.0, math.nan])
    shares = counterfactual.percentile_of(losses)
    assert shares[:-1].tolist() == [0, 0, 25, 75, 75, 100]
    assert shares[-1].isnan()


def test_summary_counts_every_draw() -> None:
    losses = torch.randn(500, generator=generator()).abs()
    summary = Counterfactual.from_losses(losses, "weights").summary(bins=20)
    assert summary["source"] == "weights"
    assert summary["draws"] == 500
    assert sum(summary["histogram"]["counts"]) == 500
    assert len(summary["histogram"]["edges"]) == 21
    assert summary["percentiles"]["100"] == pytest.approx(losses.max().item())
    expected, _ = np.histogram(losses.numpy(), 20)
    assert np.abs(np.array(summary["histogram"]["counts"]) - expected).max() <= 1


def test_a_masked_class_has_no_bin() -> None:
    """A logit of -inf: the loss of that label is infinite."""
    for finite in ([1.0, 2.0], []):
        losses = torch.tensor([*finite, math.inf, math.inf])
        summary = Counterfactual.from_losses(losses, "wrong_label").summary(bins=4)
        assert sum(summary["histogram"]["counts"]) == len(finite) and summary["draws"] > 1
        assert all(map(math.isfinite, summary["histogram"]["edges"]))


@pytest.mark.parametrize("value", [0.0, math.log(10), 5000.0])
def test_summary_of_equal_losses(value: float) -> None:
    """torchvision's ViT heads start at zero: every loss is log K."""
    summary = Counterfactual.from_losses(torch.full((40,), value), "weights").summary()
    assert sum(summary["histogram"]["counts"]) == 40
    assert summary["percentiles"]["10"] == pytest.approx(value)


def test_from_losses_takes_any_tensor() -> None:
    losses: Tensor = torch.tensor([2.0, 1.0], dtype=torch.bfloat16, requires_grad=True)
    counterfactual = Counterfactual.from_losses(losses, "weights")
    assert counterfactual.losses.dtype == torch.float32
    assert not counterfactual.losses.requires_grad
