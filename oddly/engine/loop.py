"""The training loop: everything that happens in a run, top to bottom."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from oddly.data.base import LabelledData
from oddly.engine.build import Parts, build
from oddly.engine.checkpoint import Checkpointer, fingerprint, load_checkpoint
from oddly.engine.config import RunConfig
from oddly.engine.evaluate import predict
from oddly.engine.outcome import describe_device, save_outcome
from oddly.engine.schedule import schedule_factor
from oddly.engine.tensorboard import TensorBoardLog, clear_log
from oddly.engine.watch import Watcher
from oddly.errors import InputError
from oddly.methods import Batch
from oddly.records import Run, RunWriter, environment

STEPS_BETWEEN_CHECKS = 200  # for a loss that is no longer a number
AUGMENT_SALT = 0xA06
SUSPICIOUS_SHARE = 0.5  # of the examples removed; a user should hear of it
ADVICE = "try a smaller learning rate (the last good checkpoint, if any, is kept)"


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
    with torch.random.fork_rng(), ExitStack() as cleanup:
        cleanup.callback(watcher.end)
        parts = build(config, data, watcher.reading)
        checkpoint = load_checkpoint(out) if resume else None
        finished, seconds = restore(parts, checkpoint, out) if checkpoint else (0, 0.0)
        writer = open_folder(parts, out, finished, resume, overwrite)
        log = TensorBoardLog(out, finished) if parts.config.tensorboard else None
        if log:
            cleanup.callback(log.close)
        for note in parts.notes:
            watcher.note(note)
        seconds = train_epochs(parts, writer, finished, seconds, watcher, log)
        save_outcome(parts, writer, seconds)
    Checkpointer(out).remove()
    return Run(out)


def open_folder(parts: Parts, out: Path, finished: int, resume: bool, overwrite: bool) -> RunWriter:
    """Only now, when everything could be built, is something written."""
    if resume:
        return RunWriter.reopen(out, finished)
    surroundings = environment(describe_device(parts.device))
    writer = RunWriter.create(out, parts.config.to_dict(), surroundings, overwrite)
    clear_log(out)
    return writer


def train_epochs(
    parts: Parts,
    writer: RunWriter,
    finished: int,
    seconds_before: float,
    watcher: Watcher,
    log: TensorBoardLog | None = None,
) -> float:
    """Epoch after epoch: train, let the method judge, evaluate, note it down, save."""
    config, method = parts.config, parts.method
    assert config.epochs is not None
    step_model = fast_model(parts)
    checkpointer = Checkpointer(writer.path)
    begun = time.perf_counter() - seconds_before
    watcher.begin(f"{config.method} on {parts.data.name}", writer.path, config.epochs, finished)
    for epoch in range(finished, config.epochs):
        had_verdict = method.verdict is not None
        row = run_epoch(parts, step_model, epoch, watcher)
        new_verdict = method.verdict is not None and not had_verdict
        if new_verdict:
            note_verdict(parts, watcher)
        writer.append_metrics(row)
        if log:
            log.add(row)
        if epoch + 1 < config.epochs and checkpointer.due(new_verdict):
            checkpointer.save(snapshot(parts, epoch + 1, time.perf_counter() - begun))
        watcher.end_epoch(row)
    return time.perf_counter() - begun


def note_verdict(parts: Parts, watcher: Watcher) -> None:
    verdict = parts.method.verdict
    assert verdict is not None
    watcher.note(str(verdict))
    if verdict.removed_fraction > SUSPICIOUS_SHARE:
        watcher.note(
            "more than half are removed: unless most labels are wrong, the network has learnt too"
            " little to tell; train longer, or raise the percentile"
        )
    if verdict.spared_classes:
        names = ", ".join(parts.data.class_names[k] for k in verdict.spared_classes[:5])
        more = f" and {len(verdict.spared_classes) - 5} more" * (len(verdict.spared_classes) > 5)
        watcher.note(f"classes kept whole, too small or else emptied: {names}{more}")


def run_epoch(parts: Parts, step_model: nn.Module, epoch: int, watcher: Watcher) -> dict[str, Any]:
    """One epoch, from the first step to the test; returns its row of metrics."""
    context, method = parts.context, parts.method
    begun, spent_before = time.perf_counter(), method.extra_seconds
    had_verdict = method.verdict is not None
    kept = context.sampler.num_kept
    context.epoch = epoch
    method.begin_epoch(context)
    train_loss = train_epoch(parts, step_model, epoch, watcher)
    train_seconds = time.perf_counter() - begun
    check_weights(parts.model, epoch)
    context.epoch = epoch + 1
    method.end_epoch(context)
    pruned = method.verdict is not None and not had_verdict
    return {
        "epoch": epoch + 1,
        "lr": learning_rate(parts.config, epoch + 1),
        "train_loss": train_loss,
        **test_accuracies(parts, by_class=pruned or epoch + 1 == parts.config.epochs),
        "kept": kept,
        "seconds": time.perf_counter() - begun,
        "images_per_second": kept / train_seconds,
        "denoise_seconds": method.extra_seconds - spent_before,
    }


def train_epoch(parts: Parts, model: nn.Module, epoch: int, watcher: Watcher) -> float:
    """One pass over the kept examples; returns the mean loss of its steps."""
    config, feed, sampler = parts.config, parts.train_feed, parts.context.sampler
    # Each epoch's randomness follows from its number alone, so a resumed run is the same run.
    seed = 1_000_003 * config.order_seed + epoch
    torch.manual_seed(seed)
    # Another seed: crops and flips must not follow the stream that dropout and mixup draw from.
    generator = torch.Generator(parts.device).manual_seed(seed + AUGMENT_SALT)
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
        where = f"epoch {epoch + 1}, step {int(bad[0]) + 1} of {len(losses)}"
        raise InputError(f"the loss became {float(losses[bad[0]])} in {where}; {ADVICE}")


@torch.no_grad()
def check_weights(model: nn.Module, epoch: int) -> None:
    """The last step's harm shows in no loss of this epoch, but would be saved."""
    sums = torch.stack([weight.sum() for weight in model.parameters()])  # NaN and infinity survive
    if not bool(sums.isfinite().all()):
        raise InputError(f"weights became infinite at the end of epoch {epoch + 1}; {ADVICE}")


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


def test_accuracies(parts: Parts, by_class: bool) -> dict[str, Any]:
    """Percent; None where there is nothing to test on. By class only before and after pruning."""
    if parts.test_feed is None:
        return {"test_accuracy": None, "test_accuracy_top5": None}
    predictions, given = predict(parts.model, parts.test_feed, parts.bf16), parts.test_feed.labels
    accuracies: dict[str, Any] = {
        "test_accuracy": predictions.accuracy(given),
        "test_accuracy_top5": predictions.top5_accuracy,
    }
    if by_class:
        classes = len(parts.data.class_names)
        accuracies["test_accuracy_by_class"] = predictions.accuracy_by_class(given, classes)
    return accuracies


def snapshot(parts: Parts, finished: int, seconds: float) -> dict[str, Any]:
    return {
        "finished": finished,
        "seconds": seconds,
        "data": fingerprint(parts.data),
        "model": parts.model.state_dict(),
        "optimizer": parts.optimizer.state_dict(),
        "method": parts.method.state_dict(),
    }


def restore(parts: Parts, state: dict[str, Any], folder: Path) -> tuple[int, float]:
    """Put a snapshot back; returns the finished epochs and the seconds they took."""
    if state["data"] != fingerprint(parts.data):
        raise InputError(
            f"{parts.data.name} is not what {folder} was begun with: examples or given labels"
            " changed; start again with --overwrite"
        )
    parts.model.load_state_dict(state["model"])
    parts.optimizer.load_state_dict(state["optimizer"])
    parts.method.load_state_dict(state["method"])
    return state["finished"], state["seconds"]
