"""Train one job: the engine's own epochs, but no run folder, and no test before the last epoch.

A job that is stopped, by the clock or by force, goes on from its last checkpoint.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from oddly.benchmarks.detection.jobs import Job
from oddly.benchmarks.detection.store import Store
from oddly.data.base import LabelledData
from oddly.engine.build import Parts, build
from oddly.engine.checkpoint import CannotGoOn, Checkpointer, load_checkpoint
from oddly.engine.config import MACHINE
from oddly.engine.fast import fast_model
from oddly.engine.loop import run_epoch
from oddly.engine.outcome import describe_device
from oddly.engine.randomness import fork_randomness
from oddly.engine.resume import restore, snapshot
from oddly.engine.watch import Watcher
from oddly.errors import InputError
from oddly.records import environment

CURVE = ("lr", "train_loss", "kept", "seconds")


@dataclass(frozen=True)
class Conditions:
    """Where and until when to train."""

    store: Store
    data_dir: Path | None = None
    device: str = "auto"
    deadline: float | None = None
    """On the clock `time.time`, which processes share."""
    at_once: int = 1
    """Number of jobs that share the device, which affects their seconds."""


def train_job(job: Job, conditions: Conditions) -> dict[str, Any]:
    """Train until done or until the time is up; returns a report of this call."""
    store = conditions.store
    with fork_randomness():
        data = store.load(job.case, job.seed, conditions.data_dir)
        parts = build(job.config(data, conditions.device), job.select(data))
        job.install(parts)
        curve = _go_on(parts, store.checkpoints(job))
        try:
            return _train(job, parts, data, curve, conditions)
        except torch.OutOfMemoryError:
            raise InputError(
                f"{job.case.name}, {job.name}: out of memory on the device; use fewer --jobs"
            ) from None
        except InputError as error:
            # The method fails on this case and would fail again: store that, and go on.
            store.write_job(job, {}, {"job": job.name, "error": str(error)})
            return {"done": True, "error": str(error), "passes": 0}


def _go_on(parts: Parts, folder: Path) -> list[dict[str, Any]]:
    """Restore a checkpoint if there is one; returns the metrics of the epochs so far."""
    try:
        if state := load_checkpoint(folder):
            restore(parts, state, folder)
            curve: list[dict[str, Any]] = state["curve"]
            return curve
    except CannotGoOn as error:  # not the method's fault: must not be stored as its failure
        raise InputError(f"{error.why}; remove {folder} to train that job again") from None
    return []


def _train(
    job: Job,
    parts: Parts,
    data: LabelledData,
    curve: list[dict[str, Any]],
    conditions: Conditions,
) -> dict[str, Any]:
    folder = conditions.store.checkpoints(job)
    folder.mkdir(parents=True, exist_ok=True)
    trained_before = len(curve)
    test_feed, parts.test_feed = parts.test_feed, None  # the last epoch's figures are enough
    checkpointer = Checkpointer(folder)
    model = fast_model(parts)
    epochs = parts.config.epochs or 0
    while len(curve) < epochs:
        if too_late(curve, trained_before, conditions.deadline):
            break
        row = run_epoch(parts, model, len(curve), Watcher())
        curve.append({name: row[name] for name in CURVE})
        last = len(curve) == epochs
        if not last and checkpointer.due(too_late(curve, trained_before, conditions.deadline)):
            checkpointer.save({**snapshot(parts, len(curve), 0.0), "curve": curve})
    parts.test_feed = test_feed
    done = len(curve) == epochs
    if done:
        _keep(job, parts, data, curve, conditions)
        shutil.rmtree(folder)
    new = curve[trained_before:]
    return {
        "done": done,
        "passes": sum(row["kept"] for row in new),
        "plain_passes": len(data.train) * _plain_epochs(job, data),
        "seconds": sum(row["seconds"] for row in new),
    }


def _plain_epochs(job: Job, data: LabelledData) -> int:
    return (job.case.recipe or data.recipe).epochs


def too_late(curve: list[dict[str, Any]], before: int, deadline: float | None) -> bool:
    """Whether one more epoch, as long as the longest of this call, would end too late."""
    longest = max((row["seconds"] for row in curve[before:]), default=0.0)
    return deadline is not None and time.time() + longest > deadline


def _keep(
    job: Job,
    parts: Parts,
    data: LabelledData,
    curve: list[dict[str, Any]],
    conditions: Conditions,
) -> None:
    begun = time.perf_counter()
    arrays, forward = job.collect(parts, data)
    config = {k: v for k, v in parts.config.to_dict().items() if k not in MACHINE}
    info = {
        "job": job.name,
        "what": (type(job).__doc__ or "").strip().splitlines()[0],
        "case": asdict(job.case),
        "seed": job.seed,
        "config": config,
        "plain_epochs": _plain_epochs(job, data),
        "precision": "bf16" if parts.bf16 else "fp32",
        **job.describe(parts),
        "trained_passes": sum(row["kept"] for row in curve),
        "forward_passes": forward,
        "seconds": sum(row["seconds"] for row in curve) + time.perf_counter() - begun,
        "jobs_at_once": conditions.at_once,
        "curve": {name: [_short(row[name]) for row in curve] for name in CURVE},
        "environment": environment(describe_device(parts.device)),
    }
    conditions.store.write_job(job, arrays, info)


def _short(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.5g}")
