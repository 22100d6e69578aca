"""On-the-fly data denoising for any training loop: observe every step, end every epoch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F

from oddly.core.counterfactual import Counterfactual, draw_losses
from oddly.core.head import find_head
from oddly.core.ledger import LossLedger
from oddly.core.sampler import KeepSampler
from oddly.core.stopwatch import Stopwatch
from oddly.core.verdict import Verdict, judge
from oddly.errors import InputError


class Denoiser:
    """The paper's Algorithm 1 without the loop, which stays yours.

        denoiser = Denoiser(len(train_set), num_classes=10, prune_after=15)
        loader = DataLoader(IndexedDataset(train_set), 128, sampler=denoiser.sampler)
        for epoch in range(40):
            for inputs, labels, index in loader:
                logits = model(inputs)
                denoiser.observe(index, logits, labels)
                ...                               # your loss, backward, step
            verdict = denoiser.end_epoch(model)   # a Verdict after epoch 15, else None

    `statistic` is what is compared with the threshold: `ema` of the epochs' losses by default,
    since the paper's `last` forgets quickly once a network begins to memorise.
    """

    def __init__(
        self,
        num_examples: int,
        num_classes: int,
        prune_after: int,
        percentile: float = 10.0,
        statistic: str = "ema",
        draws: int = 20_000,
        head: str | None = None,
        seed: int = 0,
        strict: bool = False,
        sampler: KeepSampler | None = None,
    ) -> None:
        if not 0 <= percentile <= 100:
            raise InputError(f"percentile must be within 0..100, not {percentile:g}")
        if prune_after < 1:
            raise InputError(f"prune_after counts finished epochs: at least 1, not {prune_after}")
        if draws < 1:
            raise InputError(f"draws must be at least 1, not {draws}")
        if num_classes < 2:
            raise InputError(f"there must be at least 2 classes, not {num_classes}")
        self.num_classes, self.prune_after, self.percentile = num_classes, prune_after, percentile
        self.draws, self.head, self.seed, self.strict = draws, head, seed, strict
        self.ledger = LossLedger(num_examples, statistic)
        # Not `sampler or …`: one at the end of its epoch has length 0 and would count as False.
        self.sampler = KeepSampler(num_examples, seed) if sampler is None else sampler
        self.stopwatch = Stopwatch()
        self.epoch = 0
        self.verdict: Verdict | None = None
        # Given labels as observed, so that no class is emptied; one spare slot for bad indices.
        dtype = torch.int16 if num_classes < 2**15 else torch.int32
        self._labels = torch.full((num_examples + 1,), -1, dtype=dtype)

    @torch.no_grad()
    def observe(self, index: Tensor, logits: Tensor, labels: Tensor) -> None:
        """Note a batch: indices (B,), logits (B, K) of the ordinary forward pass, labels (B,).

        The plain cross-entropy is computed here in fp32, whatever loss you train with.
        """
        if self.epoch >= self.prune_after:
            return  # the verdict stands; nothing more to learn
        with self.stopwatch(logits.device):
            labels = labels.to(logits.device, non_blocking=True)
            if logits.device.type == "cpu":
                self._check_labels(labels)
            losses = F.cross_entropy(logits.detach().float(), labels, reduction="none")
            self.ledger.record(index, losses)
            self._note_labels(index, labels)

    def end_epoch(self, model: nn.Module) -> Verdict | None:
        """Close the epoch; after epoch E judge, prune the sampler, and return the verdict."""
        self.epoch += 1
        self.sampler.set_epoch(self.epoch)
        if self.epoch > self.prune_after:
            return None
        with self.stopwatch(self._labels.device):
            self.ledger.close_epoch()
            if self.epoch == self.prune_after:
                self.verdict = self._judge(model)
                self.sampler.set_keep(self.verdict.keep)
                return self.verdict
        return None

    @property
    def seconds(self) -> float:
        """Time spent denoising so far."""
        return self.stopwatch.seconds

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on: tensors and plain numbers only."""
        return {
            "epoch": self.epoch,
            "seconds": self.seconds,
            "labels": self._labels,
            "ledger": self.ledger.state_dict(),
            "sampler": self.sampler.state_dict(),
            "verdict": None if self.verdict is None else _verdict_state(self.verdict),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.ledger.load_state_dict(state["ledger"])
        self.sampler.load_state_dict(state["sampler"])
        self.epoch, self._labels = state["epoch"], state["labels"].clone()
        self.stopwatch = Stopwatch(state["seconds"])
        self.verdict = None if state["verdict"] is None else _load_verdict(state["verdict"])

    def _judge(self, model: nn.Module) -> Verdict:
        head = find_head(model, self.num_classes, self.head)
        # Drawn on the CPU: every rank and every device then draws the same losses.
        generator = torch.Generator().manual_seed(self.seed)
        drawn = draw_losses(head, self.draws, generator)
        if dist.is_available() and dist.is_initialized():
            labels = self._labels.int()  # neither gloo nor NCCL can reduce int16
            dist.all_reduce(labels, op=dist.ReduceOp.MAX)
            self._labels.copy_(labels)
        return judge(
            self.ledger.values,
            self._labels[:-1],
            Counterfactual.from_losses(drawn, "weights"),
            self.percentile,
            self.epoch,
            self.num_classes,
            self.strict,
        )

    def _note_labels(self, index: Tensor, labels: Tensor) -> None:
        if self._labels.device != labels.device:
            self._labels = self._labels.to(labels.device)
        index = index.to(labels.device, non_blocking=True)
        spare = len(self._labels) - 1
        index = torch.where((index >= 0) & (index < spare), index, spare)
        self._labels[index] = labels.to(self._labels.dtype)

    def _check_labels(self, labels: Tensor) -> None:
        if not labels.numel():
            return
        low, high = labels.aminmax()
        if low < 0 or high >= self.num_classes:
            bad = int(low) if low < 0 else int(high)
            raise InputError(f"label {bad} is outside 0..{self.num_classes - 1}")


def _verdict_state(verdict: Verdict) -> dict[str, Any]:
    counterfactual = verdict.counterfactual
    return {
        **vars(verdict),
        "counterfactual": {"losses": counterfactual.losses, "source": counterfactual.source},
    }


def _load_verdict(state: dict[str, Any]) -> Verdict:
    return Verdict(**{**state, "counterfactual": Counterfactual(**state["counterfactual"])})
