"""Where a GPU spends its time in a training step, by kind of kernel; part of `throughput`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity

KINDS = {
    "compiled": ("triton_",),  # batch norm, ReLU, dropout, sums and casts, fused by torch.compile
    "convolutions": ("conv", "xmma", "cutlass", "cudnn", "gemm", "wgrad", "dgrad", "nvjet"),
    "optimizer": ("FusedSgd", "multi_tensor"),
}
"""What a kernel's name holds; the first kind that fits. All others are "rest"."""


def profile(work: Callable[[], None], steps: int) -> dict[str, float]:
    """Milliseconds in each of the steps that `work` does; "idle" is when no kernel ran."""
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as seen:
        work()
        torch.cuda.synchronize()
    spans = [
        (event.name, event.time_range.start, event.time_range.end)
        for event in seen.events() or ()
        if event.device_type.name == "CUDA" and not event.is_user_annotation
    ]
    return summarise(spans, steps)


def summarise(spans: list[tuple[str, float, float]], steps: int) -> dict[str, float]:
    """Of kernels' names, begins and ends in microseconds."""
    spent = dict.fromkeys((*KINDS, "rest", "idle"), 0.0)
    for name, begin, end in spans:
        spent[kind_of(name)] += end - begin
    busy, until = 0.0, float("-inf")
    for _, begin, end in sorted(spans, key=lambda span: span[1]):
        busy += max(0.0, end - max(begin, until))
        until = max(until, end)
    first = min((begin for _, begin, _ in spans), default=0.0)
    spent["idle"] = (until - first if spans else 0.0) - busy
    return {kind: each / 1000 / steps for kind, each in spent.items()}


def kind_of(name: str) -> str:
    for kind, parts in KINDS.items():
        if any(part in name for part in parts):
            return kind
    return "rest"
