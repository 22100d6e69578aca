from __future__ import annotations

import errno
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from oddly.data import synthetic
from oddly.engine import checkpoint, loop
from oddly.engine.build import build
from oddly.engine.config import RunConfig
from oddly.engine.loop import check_finite, check_weights, run_config, train_epoch
from oddly.engine.watch import Watcher
from oddly.errors import InputError
from oddly.records import Run
from tests.interrupt import StopAfter

NOISY = RunConfig("synthetic", epochs=5, noise=0.4, settings={"prune_after": 3})


@pytest.fixture
def save_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)


def test_metrics_tell_every_epoch(tmp_path: Path) -> None:
    run = run_config(NOISY, tmp_path / "run")
    rows = run.metrics
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5]
    by_class = [row.pop("test_accuracy_by_class", None) for row in rows]
    assert [value is not None for value in by_class] == [False, False, True, False, True]
    for row, accuracies in zip(rows, by_class, strict=True):  # classes of 20 test images each
        assert accuracies is None or np.mean(accuracies) == pytest.approx(row["test_accuracy"])
    assert all(
        list(row)
        == ["epoch", "lr", "train_loss", "test_accuracy", "test_accuracy_top5", "kept"]
        + ["seconds", "images_per_second", "denoise_seconds"]
        for row in rows
    )
    removed, readmitted = run.summary["removed"], run.summary["readmitted"]
    assert 0 < removed < 120 and readmitted > 0
    kept = [row["kept"] for row in rows]
    assert kept[:3] == [120] * 3  # then pruned after 3, looked at again after 4 and 5
    assert 120 - removed - readmitted == kept[3] <= kept[4] <= 120 - removed
    assert [row["lr"] for row in rows][-1] == 0 and rows[0]["lr"] == pytest.approx(
        0.025 * (1 + math.cos(math.pi / 5))
    )
    assert all(row["denoise_seconds"] > 0 for row in rows[:3])
    assert run.summary["denoise_seconds"] == pytest.approx(
        sum(row["denoise_seconds"] for row in rows)
    )
    assert run.summary["test_accuracy"] == rows[-1]["test_accuracy"]


class Searching(Watcher):
    """Does what the loop does where it trains on a GPU."""

    def begin_epoch(self, epoch: int, steps: int) -> None:
        torch.backends.cudnn.benchmark = True


def test_how_kernels_are_chosen_stays_the_callers_affair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    run_config(replace(NOISY, epochs=1, method="erm"), tmp_path / "run", watcher=Searching())
    assert not torch.backends.cudnn.benchmark


def test_the_callers_random_numbers_stay_the_callers(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    run_config(replace(NOISY, epochs=1, settings={}), tmp_path / "run")
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("epoch", [1, 3, 4])
@pytest.mark.usefixtures("save_always")
def test_an_interrupted_run_goes_on_bit_for_bit(tmp_path: Path, epoch: int) -> None:
    whole = run_config(NOISY, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run_config(NOISY, tmp_path / "broken", watcher=StopAfter(epoch))
    broken = Run(tmp_path / "broken")
    assert not broken.is_done and (broken.path / "checkpoint.pt").exists()
    saved = RunConfig.from_dict(broken.config)
    resumed = run_config(saved, tmp_path / "broken", resume=True)
    assert (whole.path / "verdicts.parquet").read_bytes() == (
        resumed.path / "verdicts.parquet"
    ).read_bytes()
    first, second = (load_file(run.path / "model.safetensors") for run in (whole, resumed))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert [row["train_loss"] for row in whole.metrics] == [
        row["train_loss"] for row in resumed.metrics
    ]
    assert resumed.is_done and not (resumed.path / "checkpoint.pt").exists()


def test_without_a_checkpoint_it_starts_over(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_config(NOISY, tmp_path, watcher=StopAfter(2))
    assert len(Run(tmp_path).metrics) == 2 and not (tmp_path / "checkpoint.pt").exists()
    assert len(run_config(NOISY, tmp_path, resume=True).metrics) == 5


def test_the_verdict_is_saved_at_once(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_config(NOISY, tmp_path, watcher=StopAfter(3))
    assert (tmp_path / "checkpoint.pt").exists()


@pytest.mark.usefixtures("save_always")
def test_other_data_is_not_resumed(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_config(NOISY, tmp_path, synthetic(), watcher=StopAfter(2))
    before = (tmp_path / "metrics.jsonl").read_bytes()
    with pytest.raises(InputError, match="has changed since .* was started.*--overwrite"):
        run_config(NOISY, tmp_path, synthetic(per_class=41), resume=True)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


@pytest.mark.usefixtures("save_always")
def test_a_checkpoint_of_another_version_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_config(NOISY, tmp_path, watcher=StopAfter(3))
    path = tmp_path / "checkpoint.pt"
    state = torch.load(path, weights_only=True)
    files = {file: file.read_bytes() for file in tmp_path.iterdir() if file != path}
    fewer = [{key: value for key, value in state.items() if key != name} for name in state]
    weights = {name: weight[:1] for name, weight in state["model"].items() if weight.dim()}
    others: list[Any] = [*fewer, {**state, "model": {**state["model"], **weights}}]
    others += [{**state, name: {}} for name in ("model", "optimizer", "sampler", "method")]
    for other in others:
        torch.save(other, path)
        with pytest.raises(InputError) as caught:
            run_config(NOISY, tmp_path, resume=True)
        assert str(caught.value) == (
            f"cannot continue from the checkpoint in {tmp_path}: it was written by another version"
            " of oddly; start over with --overwrite"
        )
    assert all(file.read_bytes() == content for file, content in files.items())
    torch.save(state, path)
    assert len(run_config(NOISY, tmp_path, resume=True).metrics) == 5


@pytest.mark.usefixtures("save_always")
def test_a_loss_that_is_no_number_stops_and_keeps_the_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(config: RunConfig, time: float) -> float:
        return 0.05 if time < 2.5 else 1e30

    monkeypatch.setattr(loop, "learning_rate", explode)
    config = replace(NOISY, settings={"prune_after": 5})
    with pytest.raises(InputError, match=r"loss became (nan|inf) in epoch 3, step [34] of 4; try"):
        run_config(config, tmp_path)
    saved = checkpoint.load_checkpoint(tmp_path)
    assert saved is not None and saved["finished"] == 2
    assert all(weight.isfinite().all() for weight in saved["model"].values())
    assert not Run(tmp_path).is_done and len(Run(tmp_path).metrics) == 2


def test_check_finite_names_the_first() -> None:
    losses = torch.tensor([1.0, 2.0, math.inf, math.nan])
    check_finite(losses[:2], 0)
    with pytest.raises(InputError, match="became inf in epoch 7, step 3 of 4"):
        check_finite(losses, 6)


def test_check_weights() -> None:
    model = torch.nn.Linear(2, 2)
    check_weights(model, 0)
    model.weight.data[1, 1] = math.nan
    with pytest.raises(InputError, match="infinite or NaN in epoch 1"):
        check_weights(model, 0)


def test_nothing_is_written_when_something_cannot_be_built(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown model 'resnet9000'"):
        run_config(replace(NOISY, model="resnet9000"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_full_disk_leaves_a_run_that_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(parts: Any, writer: Any, seconds: float) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_outcome", full)
        with pytest.raises(OSError, match="No space"):
            run_config(NOISY, tmp_path)
    assert not Run(tmp_path).is_done
    assert run_config(NOISY, tmp_path, resume=True).is_done


def test_a_last_part_batch_counts_in_the_mean_loss() -> None:
    parts = build(RunConfig("synthetic", method="erm", batch_size=50, learning_rate=0.0))
    loss = train_epoch(parts, parts.model, 0, Watcher())
    assert math.isfinite(loss) and loss > 0


def test_without_a_test_set_accuracy_is_unknown(tmp_path: Path) -> None:
    data = replace(synthetic(), test=None)
    run = run_config(replace(NOISY, epochs=1, settings={}), tmp_path, data)
    assert run.metrics[0]["test_accuracy"] is None and run.summary["test_accuracy"] is None


def test_not_every_epoch_needs_a_test(tmp_path: Path) -> None:
    """It changes what is known, not what is learnt; E = 3 and the last are tested anyway."""
    often, seldom = (
        run_config(replace(NOISY, test_every=n), tmp_path / str(n)).metrics for n in (1, 2)
    )
    shown = [row["test_accuracy"] for row in often]
    shown[0] = None
    assert [row["test_accuracy"] for row in seldom] == shown
    assert [r["train_loss"] for r in seldom] == [r["train_loss"] for r in often]


def test_bf16_trains_too(tmp_path: Path) -> None:
    config = replace(NOISY, epochs=2, precision="bf16", device="cpu", settings={})
    assert math.isfinite(run_config(config, tmp_path).metrics[-1]["train_loss"])


def test_tensorboard_gets_the_same_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    config = replace(NOISY, epochs=2, settings={}, tensorboard=True)
    for _ in range(2):  # the log of a run that is replaced goes too
        run = run_config(config, tmp_path, overwrite=True)
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1
    log = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [event.step for event in log.Scalars("train_loss")] == [1, 2]
    logged = [event.value for event in log.Scalars("test_accuracy")]
    assert logged == pytest.approx([row["test_accuracy"] for row in run.metrics])


def test_metrics_are_lines_of_json(tmp_path: Path) -> None:
    run_config(replace(NOISY, epochs=2, settings={}), tmp_path)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2]


def test_the_schedule_begins_anew() -> None:
    """Cosine over 4 epochs, then over the other 6; a warm-up of one epoch each time."""
    config = RunConfig(
        "synthetic", epochs=10, learning_rate=1.0, warmup=1.0, restart=4, settings={}
    )
    rates = [loop.learning_rate(config, t) for t in (0, 0.5, 1, 2.5, 3.999, 4, 4.5, 5, 7.5, 10)]
    assert rates == pytest.approx([0, 0.5, 1, 0.5, 0, 0, 0.5, 1, 0.5, 0], abs=1e-5)
    for never in (0, 10, 99):
        plain = replace(config, restart=never)
        assert loop.learning_rate(plain, 5.5) == pytest.approx(0.5)


def test_a_fork_needs_its_milestone(tmp_path: Path) -> None:
    run_config(replace(NOISY, epochs=2, settings={}), tmp_path / "trunk", milestones=[1])
    fork = checkpoint.Fork(tmp_path / "trunk", 2)
    with pytest.raises(InputError, match="has no checkpoint of epoch 2"):
        run_config(replace(NOISY, epochs=2, settings={}), tmp_path / "fork", fork=fork)
    assert checkpoint.milestone_path(tmp_path / "trunk", 1).exists()
    run_config(replace(NOISY, epochs=1, settings={}), tmp_path / "trunk", overwrite=True)
    assert not checkpoint.milestone_path(tmp_path / "trunk", 1).exists()
