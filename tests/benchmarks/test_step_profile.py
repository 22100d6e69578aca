from __future__ import annotations

import pytest
import torch

from oddly.benchmarks.step_profile import kind_of, profile, summarise


def test_kernels_by_kind() -> None:
    assert (
        kind_of("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc")
        == "convolutions"
    )
    assert (
        kind_of("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s1688wgrad>")
        == "convolutions"
    )
    assert kind_of("triton_red_fused__native_batch_norm_convolution_relu_12") == "compiled"
    assert kind_of("void at::native::multi_tensor_apply_kernel<FusedSgdMathFunctor>") == "optimizer"
    assert kind_of("Memcpy DtoD (Device -> Device)") == "rest"


def test_milliseconds_of_a_step() -> None:
    """Two steps of 10 ms: kernels that overlap count once where the device is idle."""
    spans = [
        ("wgrad", 0.0, 6_000.0),
        ("triton_a", 4_000.0, 8_000.0),
        ("FusedSgd", 9_000.0, 10_000.0),
        ("wgrad", 10_000.0, 20_000.0),
    ]
    assert summarise(spans, steps=2) == {
        "compiled": 2.0,
        "convolutions": 8.0,
        "optimizer": 0.5,
        "rest": 0.0,
        "idle": 0.5,
    }
    assert sum(summarise([], steps=1).values()) == 0


@pytest.mark.gpu
def test_a_real_product_is_seen() -> None:
    a = torch.randn(512, 512, device="cuda")
    spent = profile(lambda: [a @ a for _ in range(10)] and None, steps=10)
    assert spent["convolutions"] > 0
