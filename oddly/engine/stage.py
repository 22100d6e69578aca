"""Switch between the stages of a run, which its method declares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch

from oddly.engine.build import Parts, build_network, build_optimizer
from oddly.methods import Stage


def find_stage(stages: Sequence[Stage], epoch: int) -> tuple[int, int]:
    """The stage to which epoch `epoch` (from 0) belongs, and its place within it."""
    ends = list(accumulate(stage.epochs for stage in stages))
    number = next(i for i, end in enumerate(ends) if epoch < end)
    return number, epoch - (ends[number] - stages[number].epochs)


def is_first_epoch(stages: Sequence[Stage], epoch: int) -> bool:
    return find_stage(stages, epoch)[1] == 0


def enter_stage(parts: Parts, epoch: int) -> None:
    """Set up network and optimiser for resuming at `epoch`, with new weights.

    A checkpoint at the end of a stage has the shapes of that stage. So this sets up the stage of
    the previous epoch; `begin_stage` then switches to the next.
    """
    context = parts.context
    number, place = find_stage(parts.stages, max(epoch - 1, 0))
    set_stage(parts, number)
    context.epoch = epoch
    context.stage_epoch = place + 1 if epoch else 0


def begin_stage(parts: Parts, epoch: int) -> None:
    """Switch to the stage that starts at `epoch`, with all examples kept."""
    context = parts.context
    number, context.stage_epoch = find_stage(parts.stages, epoch)
    if number:
        keep = torch.ones(context.num_examples, dtype=torch.bool)
        context.sampler.set_keep(keep)
        set_stage(parts, number)
    parts.method.begin_stage(context)


def end_stage(parts: Parts) -> None:
    """Called after every epoch; tells the method after a stage's last one."""
    if parts.context.stage_epoch == parts.context.stage.epochs:
        parts.method.end_stage(parts.context)


def set_stage(parts: Parts, number: int) -> None:
    """Use the stage's network (the old one unless it is to be fresh) and a new optimiser."""
    context, stage = parts.context, parts.stages[number]
    if stage.fresh or stage.extra_outputs != context.stage.extra_outputs:
        model = build_network(parts.config, parts.data, parts.device, stage.extra_outputs, number)
        parts.model = context.model = model
    context.stage, context.stage_number = stage, number
    parts.optimizer = build_optimizer(parts.config, parts.model, parts.method, parts.device)
