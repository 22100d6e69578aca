"""The overhead benchmark at a size that says nothing about speed, only that it measures."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from oddly.benchmarks.overhead import CLASSES, SIDE, make_data, measure, summarise
from oddly.errors import InputError

STEPS, BATCH, PRUNE_AFTER, ROUNDS = 10, 20, 2, 1


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    return measure(
        "cpu", "resnet8", steps=STEPS, batch_size=BATCH, prune_after=PRUNE_AFTER, rounds=ROUNDS
    )


def test_figures_are_plain_and_name_the_machine(figures: dict[str, Any]) -> None:
    assert json.loads(json.dumps(figures)) == figures
    assert figures["device"] == "cpu" and figures["precision"] == "fp32"
    assert figures["cpu_count"] >= 1 and figures["packages"]["torch"]
    assert (figures["model"], figures["steps"], figures["batch_size"]) == ("resnet8", STEPS, BATCH)
    assert figures["examples"] == STEPS * BATCH and figures["prune_after"] == PRUNE_AFTER


def test_ratio_is_denoising_over_plain_training(figures: dict[str, Any]) -> None:
    share = figures["denoise_seconds"] / figures["erm_seconds"]
    assert figures["ratio"] == pytest.approx(1 + share)
    assert 1 < figures["ratio"] < 10  # at this size pruning weighs far more than it should
    assert figures["interleaved_ratio"] > 0


def test_observing_and_pruning_take_time(figures: dict[str, Any]) -> None:
    assert figures["observe_microseconds"] > 0 and figures["prune_milliseconds"] > 0


def trial(*epoch_seconds: float, spent: float = 0.0, pruning: float = 0.0) -> Any:
    """What `summarise` reads of a run, with the seconds given by hand."""
    parts = SimpleNamespace(method=SimpleNamespace(extra_seconds=spent))
    return SimpleNamespace(parts=parts, epoch_seconds=[*epoch_seconds], prune_seconds=pruning)


def test_the_figures_by_hand() -> None:
    """Two rounds of two epochs of five steps: 20 s of plain training, 0.4 s of denoising."""
    pairs = [
        (trial(4.0, 6.0), trial(4.4, 6.6, spent=0.3, pruning=0.1)),
        (trial(5.0, 5.0), trial(6.0, 5.0, spent=0.1, pruning=0.06)),
    ]
    figures = summarise(pairs, steps=5)
    assert figures == pytest.approx(
        {
            "ratio": 1.02,
            "interleaved_ratio": 1.1,  # the median of 1.1, 1.1, 1.2 and 1.0
            "denoise_seconds": 0.4,
            "erm_seconds": 20.0,
            "step_milliseconds": 1000.0,  # 20 s in 20 steps
            "observe_microseconds": 12_000.0,  # 0.24 s in 20 steps
            "prune_milliseconds": 80.0,
        }
    )


def test_leaves_the_random_stream_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    measure("cpu", "resnet8", steps=10, batch_size=20, prune_after=1, rounds=1)
    assert torch.equal(torch.rand(3), expected)


def test_pictures_are_not_zeros() -> None:
    images = make_data(100).train.images
    assert isinstance(images, torch.Tensor)
    assert images.shape == (100, 3, SIDE, SIDE) and images.dtype == torch.uint8
    assert (images > 0).float().mean() > 0.9 and images.float().std() > 20
    assert len(make_data(100).class_names) == CLASSES


def test_unknown_model_is_told_in_one_line() -> None:
    with pytest.raises(InputError, match="resnet7"):
        measure("cpu", "resnet7", steps=1, batch_size=10)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_measures_on_gpu() -> None:
    figures = measure("cuda", "wrn-10-1", steps=10, batch_size=20, rounds=1)
    assert figures["device"] == "cuda" and figures["denoise_seconds"] > 0
