"""Run a network over a split: probabilities, or the features before the final layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from oddly.core import find_head
from oddly.engine.feed import Feed
from oddly.engine.table import check_fits


def predict_probabilities(
    model: nn.Module,
    index: Tensor | None = None,
    *,
    feed: Feed,
    num_classes: int,
    bf16: bool = False,
) -> Tensor:
    """(N, K) softmax, un-augmented, in evaluation mode; outputs beyond the classes left out.

    Of all examples, or of those at `index`.
    """
    return _collect(model, feed, bf16, lambda logits: logits[:, :num_classes].softmax(1), index)


def read_features(model: nn.Module, *, feed: Feed, bf16: bool = False) -> Tensor:
    """(N, D) the inputs of the final linear layer."""
    outputs = _count_outputs(model, feed)
    seen: list[Tensor] = []
    head = find_head(model, outputs)
    hook = head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].float()))
    try:
        return _collect(model, feed, bf16, lambda _: seen.pop())
    finally:
        hook.remove()


@torch.no_grad()
def _collect(
    model: nn.Module,
    feed: Feed,
    bf16: bool,
    read: Callable[[Tensor], Tensor],
    index: Tensor | None = None,
) -> Tensor:
    order = torch.arange(len(feed.split)) if index is None else index
    table, done = torch.empty(0), 0
    for logits, _ in sweep(model, feed, bf16, order):
        rows = read(logits)
        if not done:  # allocate it whole: joining parts at the end would need twice the memory
            check_fits("a pass over all examples stores", len(order), rows.shape[1], rows.device)
            table = rows.new_empty(len(order), rows.shape[1])
        table[done : done + len(rows)] = rows
        done += len(rows)
    return table


@torch.no_grad()
def sweep(
    model: nn.Module, feed: Feed, bf16: bool, order: Tensor, mirror: bool = False
) -> Iterator[tuple[Tensor, Tensor]]:
    """Logits in fp32 and labels, a batch at a time; un-augmented, in evaluation mode.

    `mirror`: the logits are the mean of those of an image and of its mirror image.
    """
    was_training = model.training
    model.eval()
    try:
        for _, (inputs, *_), labels in feed.batches(order):
            with torch.autocast(inputs.device.type, torch.bfloat16, enabled=bf16):
                logits = model(inputs).float()
                if mirror:
                    logits = (logits + model(inputs.flip(3)).float()) / 2
            yield logits, labels
    finally:
        model.train(was_training)


def _count_outputs(model: nn.Module, feed: Feed) -> int:
    ((logits, _),) = sweep(model, feed, False, torch.arange(1))
    return logits.shape[1]
