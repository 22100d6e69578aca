"""The training loop: everything that happens in a run, top to bottom."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from oddly.data.base import LabelledData
from oddly.engine.build import Parts, build
from oddly.engine.checkpoint import Checkpointer, load_checkpoint
from oddly.engine.config import RunConfig
from oddly.engine.evaluate import predict
from oddly.engine.outcome import describe_device, save_outcome
from oddly.engine.schedule import schedule_factor
from oddly.engine.watch import TensorBoardWatcher, Watcher
from oddly.errors import InputError
from oddly.methods import Batch
from oddly.records import Run, RunWriter, environment

STEPS_BETWEEN_CHECKS = 200  # for a loss that is no longer a number


def run_config(
    config: RunConfig,
    out: Path,
    data: LabelledData | None = None,
    resume: bool = False,
    overwrite: bool = False,
    watcher: Watcher | None = None,
) -> Run:
    """Train as `config` says into the run folder `out`; the last epoch's accuracy is the result."""
    watcher = watcher or Watcher()
    if resume:
        if Run(out).is_done:
            return Run(out)
        config = RunConfig.from_dict(Run(out).config)
    with torch.random.fork_rng():
        parts = build(config, data)
        checkpoint = load_checkpoint(out, parts.device) if resume else None
        finished, seconds = restore(parts, checkpoint) if checkpoint else (0, 0.0)
        if resume:
            writer = RunWriter.reopen(out, finished)
        else:
            surroundings = environment(describe_device(parts.device))
            writer = RunWriter.create(out, parts.config.to_dict(), surroundings, overwrite)
        if parts.config.tensorboard:
            watcher = TensorBoardWatcher(watcher, out / "tensorboard")
        for note in parts.notes:
            watcher.note(note)
        try:
            seconds += train_epochs(parts, writer, finished, seconds, watcher)
            save_outcome(parts, writer, seconds)
        finally:
            watcher.end()
    Checkpointer(out).remove()
    return Run(out)


def train_epochs(
    parts: Parts, writer: RunWriter, finished: int, seconds_before: float, watcher: Watcher
) -> float:
    """Epoch after epoch: train, let the method judge, evaluate, note it down, save."""
    config, context, method = parts.config, parts.context, parts.method
    assert config.epochs is not None
    step_model = fast_model(parts)
    checkpointer = Checkpointer(writer.path)
    begun = time.perf_counter()
    watcher.begin(f"{config.method} on {parts.data.name}", config.epochs, finished)
    for epoch in range(finished, config.epochs):
        epoch_begun, spent_before = time.perf_counter(), method.extra_seconds
        kept = context.sampler.num_kept
        context.epoch = epoch
        method.begin_epoch(context)
        train_loss = train_epoch(parts, step_model, epoch, watcher)
        train_seconds = time.perf_counter() - epoch_begun
        had_verdict = method.verdict is not None
        context.epoch = epoch + 1
        method.end_epoch(context)
        new_verdict = method.verdict is not None and not had_verdict
        if new_verdict:
            watcher.note(str(method.verdict))
        row = {
            "epoch": epoch + 1,
            "lr": learning_rate(config, epoch + 1),
            "train_loss": train_loss,
            **test_accuracies(parts),
            "kept": kept,
            "seconds": time.perf_counter() - epoch_begun,
            "images_per_second": kept / train_seconds,
            "denoise_seconds": method.extra_seconds - spent_before,
        }
        writer.append_metrics(row)
        watcher.end_epoch(row)
        seconds = time.perf_counter() - begun
        if epoch + 1 < config.epochs:
            checkpointer.save(snapshot(parts, epoch + 1, seconds_before + seconds), new_verdict)
    return time.perf_counter() - begun


def train_epoch(parts: Parts, model: nn.Module, epoch: int, watcher: Watcher) -> float:
    """One pass over the kept examples; returns the mean loss of its steps."""
    config, feed, sampler = parts.config, parts.train_feed, parts.context.sampler
    # Each epoch's randomness follows from its number alone, so a resumed run is the same run.
    seed = 1_000_003 * config.order_seed + epoch
    torch.manual_seed(seed)
    generator = torch.Generator(parts.device).manual_seed(seed)
    sampler.set_epoch(epoch)
    order = sampler.order()
    steps = feed.steps(len(order))
    losses = torch.zeros(steps, device=parts.device)
    parts.model.train()
    watcher.begin_epoch(epoch + 1, steps)
    batches = feed.batches(order, generator, parts.method.views)
    for step, (index, views, labels) in enumerate(batches):
        set_learning_rate(parts, epoch + step / steps)
        whole = len(index) == feed.batch_size  # a part batch would have to be compiled anew
        with torch.autocast(parts.device.type, torch.bfloat16, enabled=parts.bf16):
            output = parts.method.loss(
                model if whole else parts.model, Batch(index, views[0], labels, views[1:])
            )
        parts.optimizer.zero_grad(set_to_none=True)
        output.loss.backward()
        parts.optimizer.step()
        losses[step] = output.loss.detach()
        watcher.step(len(index))
        if (step + 1) % STEPS_BETWEEN_CHECKS == 0:
            check_finite(losses[: step + 1], epoch)
    check_finite(losses, epoch)
    return float(losses.mean())


def check_finite(losses: Tensor, epoch: int) -> None:
    """Stop at the first loss that is not a number, before it reaches a checkpoint."""
    bad = (~losses.isfinite()).nonzero().flatten()
    if len(bad):
        raise InputError(
            f"the loss became {float(losses[bad[0]])} in epoch {epoch + 1}, step {int(bad[0]) + 1};"
            " the last good checkpoint is kept; try a smaller learning rate"
        )


def learning_rate(config: RunConfig, time: float) -> float:
    assert config.epochs is not None and config.learning_rate is not None
    factor = schedule_factor(config.schedule, time, config.epochs, config.warmup)
    return config.learning_rate * factor


def set_learning_rate(parts: Parts, time: float) -> None:
    for group in parts.optimizer.param_groups:
        group["lr"] = learning_rate(parts.config, time)


def fast_model(parts: Parts) -> nn.Module:
    """The model that whole batches go through: compiled into CUDA graphs where asked for."""
    if parts.device.type == "cuda":
        torch.backends.cudnn.benchmark = True
    if not parts.config.compile:
        return parts.model
    mode = "reduce-overhead" if parts.device.type == "cuda" else "default"
    compiled: nn.Module = torch.compile(parts.model, mode=mode)  # type: ignore[assignment]
    return compiled


def test_accuracies(parts: Parts) -> dict[str, float | None]:
    """Percent; None where there is nothing to test on."""
    if parts.test_feed is None:
        return {"test_accuracy": None, "test_accuracy_top5": None}
    predictions = predict(parts.model, parts.test_feed, parts.bf16)
    return {
        "test_accuracy": predictions.accuracy(parts.test_feed.labels),
        "test_accuracy_top5": predictions.top5_accuracy,
    }


def snapshot(parts: Parts, finished: int, seconds: float) -> dict[str, Any]:
    return {
        "finished": finished,
        "seconds": seconds,
        "model": parts.model.state_dict(),
        "optimizer": parts.optimizer.state_dict(),
        "method": parts.method.state_dict(),
    }


def restore(parts: Parts, state: dict[str, Any]) -> tuple[int, float]:
    """Put a snapshot back; returns the finished epochs and the seconds they took."""
    parts.model.load_state_dict(state["model"])
    parts.optimizer.load_state_dict(state["optimizer"])
    parts.method.load_state_dict(state["method"])
    return state["finished"], state["seconds"]
