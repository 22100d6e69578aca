from __future__ import annotations

import pytest
import torch

from oddly.benchmarks.throughput import count_flops, make_data, make_loader, measure, time_once
from oddly.engine.build import build
from oddly.engine.config import RunConfig

CPU = torch.device("cpu")


def test_measure_on_a_cpu() -> None:
    figures = measure("cpu", steps=1, batch_size=8, compile=False, workers=0)
    assert figures["images_per_second"] > 0 and figures["dataloader_images_per_second"] > 0
    assert figures["ratio"] == pytest.approx(
        figures["images_per_second"] / figures["dataloader_images_per_second"]
    )
    assert figures["share_of_matmul"] == pytest.approx(
        figures["teraflops"] / figures["matmul_teraflops"]
    )
    assert figures["n"] == 3 and figures["model"] == "resnet8" and figures["packages"]["torch"]


def test_the_data_are_random_and_as_many_as_asked_for() -> None:
    data = make_data(33)
    images = data.train.images
    assert isinstance(images, torch.Tensor) and images.shape == (33, 3, 32, 32)
    assert len(images.unique()) > 200 and data.augment.pad == 4 and data.augment.flip


def test_both_loops_see_the_same_kind_of_batch() -> None:
    inputs, labels = next(iter(make_loader(make_data(16), 8, 0, CPU)))
    assert inputs.shape == (8, 3, 32, 32) and labels.dtype == torch.int64
    assert 0.2 < inputs.std() < 3


def test_flops_of_a_known_network() -> None:
    """ResNet-8 at 8x8 pixels, by hand: 2·9·in·out per pixel of each convolution, and the head."""
    parts = build(RunConfig("synthetic", method="erm", model="resnet8", device="cpu"))
    planes = [(3, 16, 64), (16, 16, 64), (16, 16, 64)]
    planes += [(16, 32, 16), (32, 32, 16), (32, 64, 4), (64, 64, 4)]
    each = [2 * 9 * a * b * pixels for a, b, pixels in planes]
    head = 2 * 64 * 3
    # Backward: once for the weights, once for the inputs, which the first layer does not need.
    assert count_flops(parts) == 3 * (sum(each) + head) - each[0]


def test_time_once_takes_as_long_as_it_takes() -> None:
    import time

    assert 0.02 <= time_once(lambda: time.sleep(0.02), CPU) < 1
