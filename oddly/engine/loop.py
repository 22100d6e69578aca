"""The training loop: everything that happens in a run, top to bottom."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from oddly.data.base import LabelledData
from oddly.engine.build import Parts, build
from oddly.engine.checkpoint import Checkpointer, Fork, clear_milestones, load_checkpoint
from oddly.engine.config import RunConfig
from oddly.engine.evaluate import score_test_set
from oddly.engine.fast import fast_model, no_search, search_kept
from oddly.engine.notice import tell_news
from oddly.engine.outcome import describe_device, save_outcome
from oddly.engine.randomness import fork_randomness
from oddly.engine.resume import restore, snapshot
from oddly.engine.schedule import schedule_factor, split_cycles
from oddly.engine.stage import begin_stage, end_stage, is_first_epoch
from oddly.engine.tensorboard import TensorBoardLog, clear_log
from oddly.engine.watch import Stopped, Watcher
from oddly.errors import InputError
from oddly.methods import Batch, StepOutput
from oddly.records import Run, RunWriter, check_free, environment, writing

STEPS_BETWEEN_CHECKS = 200  # of whether the loss is still finite
AUGMENT_SALT = 0xA06
ADVICE = "try a lower learning rate (the last good checkpoint, if any, is kept)"


def run_config(
    config: RunConfig,
    out: Path,
    data: LabelledData | None = None,
    resume: bool = False,
    overwrite: bool = False,
    watcher: Watcher | None = None,
    milestones: Collection[int] = (),
    fork: Fork | None = None,
) -> Run:
    """Train as `config` says and write the run folder `out`.

    `milestones`: finished epochs whose checkpoint is kept, so that other runs can fork from it.
    `fork`: take over epochs that another run has already trained.
    """
    watcher = watcher or Watcher()
    with fork_randomness(), search_kept(), ExitStack() as cleanup:
        cleanup.callback(watcher.end)
        cleanup.enter_context(writing(out))
        if not resume:
            check_free(out, overwrite)  # before images are read, perhaps for minutes
        parts = build(config, data, watcher.reading)
        checkpoint, source = load_checkpoint(out) if resume else None, out
        if checkpoint is None and fork:
            checkpoint, source = fork.load(), fork.trunk
        finished, seconds = restore(parts, checkpoint, source) if checkpoint else (0, 0.0)
        writer = open_folder(parts, out, finished, resume, overwrite)
        if fork:
            fork.copy_metrics(writer)
        log = TensorBoardLog(out, finished) if parts.config.tensorboard else None
        if log:
            cleanup.callback(log.close)
        for note in parts.notes:
            watcher.note(note)
        seconds = train_epochs(parts, writer, finished, seconds, watcher, log, milestones)
        save_outcome(parts, writer, seconds)
        Checkpointer(out).remove()
    return Run(out)


def open_folder(parts: Parts, out: Path, finished: int, resume: bool, overwrite: bool) -> RunWriter:
    """Create or reopen the run folder; called once everything else has been built."""
    if resume:
        return RunWriter.reopen(out, finished)
    surroundings = environment(describe_device(parts.device))
    writer = RunWriter.create(out, parts.config.to_dict(), surroundings, overwrite)
    clear_log(out)
    clear_milestones(out)
    return writer


def train_epochs(
    parts: Parts,
    writer: RunWriter,
    finished: int,
    seconds_before: float,
    watcher: Watcher,
    log: TensorBoardLog | None = None,
    milestones: Collection[int] = (),
) -> float:
    """For each epoch: train, let the method judge, evaluate, record, save; returns the seconds."""
    config, method, epochs = parts.config, parts.method, parts.context.epochs
    step_model = fast_model(parts)
    checkpointer = Checkpointer(writer.path)
    begun = time.perf_counter() - seconds_before
    watcher.begin(f"{config.method} on {parts.data.name}", writer.path, epochs, finished)
    for epoch in range(finished, epochs):
        before = method.verdict
        if is_first_epoch(parts.stages, epoch):
            begin_stage(parts, epoch)
            step_model = fast_model(parts)
        row = run_epoch(parts, step_model, epoch, watcher)
        end_stage(parts)
        new_verdict = method.verdict is not None and before is None
        news = (method.verdict, before, epoch + 1, parts.data.class_names, parts.data.pictures)
        for line in tell_news(*news):
            watcher.note(line)
        writer.append_metrics(row)
        if log:
            log.add(row)
        stop = watcher.should_stop(row) and epoch + 1 < epochs
        if epoch + 1 in milestones:
            state = snapshot(parts, epoch + 1, time.perf_counter() - begun)
            checkpointer.save(state, epoch + 1)
        if epoch + 1 < epochs and checkpointer.due(new_verdict or stop):
            checkpointer.save(snapshot(parts, epoch + 1, time.perf_counter() - begun))
            watcher.saved(epoch + 1)
        watcher.end_epoch(row)
        if stop:
            raise Stopped(epoch + 1)
    return time.perf_counter() - begun


def run_epoch(parts: Parts, step_model: nn.Module, epoch: int, watcher: Watcher) -> dict[str, Any]:
    """One epoch, from the first step to the test; returns its row of metrics."""
    context, method = parts.context, parts.method
    begun, spent_before = time.perf_counter(), method.extra_seconds
    had_verdict = method.verdict is not None
    method.begin_epoch(context)
    kept = context.sampler.num_kept
    train_loss = train_epoch(parts, step_model, epoch, watcher)
    train_seconds = time.perf_counter() - begun
    check_weights(parts.model, epoch)
    context.epoch += 1
    context.stage_epoch += 1
    method.end_epoch(context)
    pruned = method.verdict is not None and not had_verdict
    return {
        "epoch": epoch + 1,
        "lr": learning_rate(parts.stage_config, context.stage_epoch),
        "train_loss": train_loss,
        **score_test_set(parts, by_class=pruned or context.is_last),
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
    if parts.trusted_feed:
        parts.trusted_feed.set_epoch(seed)
    parts.model.train()
    stage_config, stage_epoch = parts.stage_config, parts.context.stage_epoch
    watcher.begin_epoch(epoch + 1, steps)
    batches = feed.batches(order, generator, parts.method.views)
    for step, (index, views, labels) in enumerate(batches):
        set_learning_rate(parts.optimizer, stage_config, stage_epoch + step / steps)
        if parts.config.compile:
            torch.compiler.cudagraph_mark_step_begin()
        batch = Batch(index, views[0], labels, views[1:])
        if len(index) == feed.batch_size:
            output = forward_backward(parts, model, batch)
        else:  # another shape would be compiled again, and is not worth a search for kernels
            with no_search():
                output = forward_backward(parts, parts.model, batch)
        parts.optimizer.step()
        # Here rather than before backward: gradients must not outlive the step in a CUDA graph.
        parts.optimizer.zero_grad(set_to_none=True)
        losses[step] = output.loss.detach()
        watcher.step(len(index))
        if (step + 1) % STEPS_BETWEEN_CHECKS == 0:
            check_finite(losses[: step + 1], epoch)
    check_finite(losses, epoch)
    return float(losses.mean())


def forward_backward(parts: Parts, model: nn.Module, batch: Batch) -> StepOutput:
    with torch.autocast(parts.device.type, torch.bfloat16, enabled=parts.bf16):
        output = parts.method.loss(model, batch)
    output.loss.backward()
    return output


def check_finite(losses: Tensor, epoch: int) -> None:
    """Stop at the first loss that is not a number, before it reaches a checkpoint."""
    bad = (~losses.isfinite()).nonzero().flatten()
    if len(bad):
        where = f"epoch {epoch + 1}, step {int(bad[0]) + 1} of {len(losses)}"
        raise InputError(f"the loss became {float(losses[bad[0]])} in {where}; {ADVICE}")


@torch.no_grad()
def check_weights(model: nn.Module, epoch: int) -> None:
    """Stop if the epoch's last step broke the weights: no loss shows it, but it would be saved."""
    sums = torch.stack([weight.sum() for weight in model.parameters()])  # NaN and infinity survive
    if not bool(sums.isfinite().all()):
        raise InputError(f"weights became infinite or NaN in epoch {epoch + 1}; {ADVICE}")


def learning_rate(config: RunConfig, time: float) -> float:
    assert config.epochs is not None and config.learning_rate is not None
    cycles = split_cycles(config.epochs, config.restart)
    begin, end = next((cycle for cycle in cycles if time < cycle[1]), cycles[-1])
    factor = schedule_factor(config.schedule, time - begin, end - begin, config.warmup)
    return config.learning_rate * factor


def set_learning_rate(optimizer: torch.optim.Optimizer, config: RunConfig, time: float) -> None:
    """Set the schedule's rate in every parameter group without its own."""
    rate = learning_rate(config, time)
    for group in optimizer.param_groups:
        group["lr"] = group.get("own_lr", rate)
