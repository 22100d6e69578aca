"""What every method must do, tested by being listed in METHODS."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import oddly
from oddly.data import synthetic
from oddly.data.base import LabelledData
from oddly.engine import checkpoint
from oddly.engine.build import Parts, build
from oddly.engine.config import RunConfig
from oddly.engine.loop import train_epoch
from oddly.engine.watch import Watcher
from oddly.errors import InputError
from oddly.methods import METHODS, build_method, settings_of
from oddly.records import Run
from oddly.report import write_report
from tests.interrupt import StopAfter

EPOCHS = 4


def check_whole(run: Run, examples: int) -> None:
    assert run.is_done and len(run.verdicts) == examples
    assert all(math.isfinite(row["train_loss"]) for row in run.metrics)
    assert all(
        weight.isfinite().all() for weight in load_file(run.path / "model.safetensors").values()
    )
    assert 0 < run.verdicts["keep"].sum() <= examples


def quick(method: str) -> dict[str, Any]:
    """The last epoch's threshold keeps at least something; what trains beside, trains shortly."""
    wanted = {"percentile": 100, "steps": 3}
    return {name: value for name, value in wanted.items() if name in settings_of(method)}


@pytest.fixture(autouse=True)
def has_its_package(request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params.get("method") == "confident_learning":
        pytest.importorskip("cleanlab")


@pytest.mark.parametrize("method", METHODS)
def test_its_name_is_all_it_needs(method: str, tmp_path: Path) -> None:
    run = oddly.train("digits", tmp_path, method=method, model="resnet8", epochs=1)
    check_whole(run, 1437 - 143 * METHODS[method].needs_trusted_labels)
    assert run.summary["method"] == method
    assert method in write_report(run).read_text()


@pytest.mark.parametrize("method", METHODS)
def test_it_learns(method: str, tmp_path: Path) -> None:
    run = oddly.train("synthetic", tmp_path, method=method, epochs=8, noise=0.2)
    assert run.summary["test_accuracy"] > 90
    assert len(run.metrics) == run.summary["epochs"]


@pytest.mark.gpu
@pytest.mark.parametrize("method", METHODS)
def test_it_learns_on_a_gpu_even_when_interrupted(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bf16, where nothing may stay behind on the CPU."""
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    options: dict[str, Any] = {"method": method, "epochs": 8, "noise": 0.2}
    options |= {"device": "cuda", "precision": "bf16"}
    with pytest.raises(KeyboardInterrupt):
        oddly.train("synthetic", tmp_path, watcher=StopAfter(4), **options)
    run = oddly.train(out=tmp_path, resume=True, device="cuda")
    check_whole(run, len(run.verdicts))
    assert run.summary["test_accuracy"] > 90


@pytest.mark.parametrize("method", METHODS)
def test_it_resumes_bit_for_bit(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its first epoch, in the middle, where a stage ends, and before its last epoch."""
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    options: dict[str, Any] = {"method": method, "epochs": EPOCHS, "noise": 0.4, **quick(method)}
    whole = oddly.train("synthetic", tmp_path / "whole", **options)
    total, first_stage = whole.summary["epochs"], whole.summary["stages"][0]["epochs"]
    for epoch in sorted({1, total // 2, first_stage, total - 1} & set(range(1, total))):
        broken = tmp_path / f"broken {epoch}"
        with pytest.raises(KeyboardInterrupt):
            oddly.train("synthetic", broken, watcher=StopAfter(epoch), **options)
        check_same(whole, oddly.train(out=broken, resume=True))


def check_same(whole: Run, resumed: Run) -> None:
    first, second = (load_file(run.path / "model.safetensors") for run in (whole, resumed))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    files = [(run.path / "verdicts.parquet").read_bytes() for run in (whole, resumed)]
    assert files[0] == files[1]
    assert whole.counterfactual == resumed.counterfactual


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("data", "batch_size"),
    [
        pytest.param(synthetic(per_class=11), 32, id="last batch of one"),
        pytest.param(synthetic(per_class=11), 30, id="last batch of three"),
        pytest.param(synthetic(per_class=5), 64, id="less than one batch"),
        pytest.param(synthetic(2), 32, id="2 classes"),
        pytest.param(synthetic(100, per_class=8, test_per_class=1), 64, id="100 classes"),
        pytest.param(synthetic(channels=1, size=4), 32, id="grey, 4 x 4"),
    ],
)
def test_it_survives_odd_shapes(
    data: LabelledData, batch_size: int, method: str, tmp_path: Path
) -> None:
    options = {"method": method, "epochs": 3, "batch_size": batch_size, **quick(method)}
    if why := cannot(method, data, batch_size):
        with pytest.raises(InputError, match=why):
            oddly.train(data, tmp_path, **options)
        return
    run = oddly.train(data, tmp_path, **options)
    check_whole(run, len(run.verdicts))
    assert len(run.verdicts) > 0.8 * len(data.train)


def cannot(method: str, data: LabelledData, batch_size: int) -> str | None:
    """Why a method refuses, where it may."""
    if METHODS[method].needs_trusted_labels and len(data.train) < 20:
        return "too few; pass --trusted FILE"
    if method == "dmi" and batch_size < 2 * len(data.class_names):
        return "needs every class in every batch"
    return None


@pytest.mark.parametrize("method", METHODS)
def test_it_trains_in_bf16(method: str, tmp_path: Path) -> None:
    options = {"epochs": 1, "precision": "bf16", "device": "cpu", **quick(method)}
    run = oddly.train("synthetic", tmp_path, method=method, **options)
    check_whole(run, len(run.verdicts))


def count_passes(parts: Parts) -> float:
    """Forward passes with gradients, and a third for each without, in epochs' worth of examples."""
    passes = 0.0

    def note(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal passes
        with_gradient = torch.is_grad_enabled() and output.requires_grad
        passes += len(inputs[0]) * (1 if with_gradient else 1 / 3)

    networks = {parts.model, *(v for v in vars(parts.method).values() if isinstance(v, nn.Module))}
    for network in networks:
        network.register_forward_hook(note)
    parts.method.begin_stage(parts.context)
    parts.context.epoch = parts.context.stage_epoch = 30  # beyond every warm-up
    parts.method.begin_epoch(parts.context)
    train_epoch(parts, parts.model, 0, Watcher())
    return passes / len(parts.data.train)


# Not ren: its forward-mode pass shows no gradient, and its trusted batch is smaller here.
COSTLY = [name for name in METHODS if METHODS[name].passes != 1 and name != "ren"]


@pytest.mark.parametrize("method", COSTLY)
def test_it_costs_what_it_declares(method: str) -> None:
    parts = build(RunConfig("synthetic", method=method, epochs=40, device="cpu"))
    assert count_passes(parts) == pytest.approx(METHODS[method].passes, rel=0.25)


@pytest.mark.parametrize("method", METHODS)
def test_settings_are_typed_fields(method: str) -> None:
    built, notes = build_method(method, {})
    assert not notes
    for name in settings_of(method):
        again, _ = build_method(method, {name: getattr(built, name)})
        assert getattr(again, name) == getattr(built, name)


@pytest.mark.parametrize("method", METHODS)
def test_its_class_says_what_it_is(method: str) -> None:
    assert METHODS[method].__doc__ and METHODS[method].__module__.startswith("oddly.methods.")
