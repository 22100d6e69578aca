"""On-the-fly data denoising for any training loop: observe every step, end every epoch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist

from oddly.core.counterfactual import Counterfactual, draw_losses, plain_losses
from oddly.core.head import find_head
from oddly.core.indexed import IndexedDataset
from oddly.core.ledger import LossLedger, merge_mean
from oddly.core.sampler import KeepSampler
from oddly.core.sentinels import SMALLEST, Sentinels
from oddly.core.stopwatch import Stopwatch
from oddly.core.verdict import Verdict, judge
from oddly.errors import InputError

COUNTERFACTUALS = {"sentinels": 6.0, "weights": 10.0}
"""Where the threshold comes from, with its default percentile."""
PAPER_SHARE = 75 / 200  # the paper prunes after epoch 75 of 200


class Denoiser:
    """The paper's Algorithm 1 without the loop, which stays yours.

        train_set = IndexedDataset(train_set)
        denoiser = Denoiser(train_set, num_classes=10, epochs=40)
        loader = DataLoader(train_set, 128, sampler=denoiser.sampler)
        for epoch in range(40):
            for inputs, labels, index in loader:
                logits = model(inputs)
                denoiser.observe(index, logits, labels)
                ...                               # your loss, backward, step
            verdict = denoiser.end_epoch(model)   # a Verdict once, after epoch E

    `counterfactual` says what a wrong label is compared with. `sentinels`: a few labels are
    really replaced until E; an example goes when its margin is no better than most of theirs.
    E is found by itself (`prune_after` sets it). `weights`: the paper's q_n, from the final
    layer's weights alone; it needs nothing of the data, so it is also the fallback for fewer
    than 300 examples and where only their number is given, so that nothing can be planted.
    """

    def __init__(
        self,
        examples: IndexedDataset | int,
        num_classes: int,
        epochs: int | None = None,
        prune_after: int | None = None,
        percentile: float | None = None,
        counterfactual: str | None = None,
        statistic: str = "ema",
        draws: int = 20_000,
        head: str | None = None,
        seed: int = 0,
        strict: bool = False,
        sampler: KeepSampler | None = None,
    ) -> None:
        if not isinstance(examples, int | IndexedDataset):
            kind = type(examples).__name__
            raise InputError(f"Denoiser takes IndexedDataset(your {kind}) or a number of examples")
        dataset = None if isinstance(examples, int) else examples
        num_examples = examples if isinstance(examples, int) else len(examples)
        if counterfactual is None:
            enough = dataset is not None and num_examples >= SMALLEST
            counterfactual = "sentinels" if enough else "weights"
        if counterfactual not in COUNTERFACTUALS:
            known = " or ".join(COUNTERFACTUALS)
            raise InputError(f"counterfactual must be {known}, not '{counterfactual}'")
        percentile = COUNTERFACTUALS[counterfactual] if percentile is None else percentile
        _check_numbers(num_classes, epochs, prune_after, percentile, draws)
        if prune_after is None and epochs and counterfactual == "weights":
            prune_after = max(1, round(PAPER_SHARE * epochs))
        self.num_classes, self.percentile = num_classes, percentile
        self.epochs, self.prune_after = epochs, prune_after
        self.draws, self.head, self.seed, self.strict = draws, head, seed, strict
        self.ledger = LossLedger(num_examples, statistic)
        # Not `sampler or …`: one at the end of its epoch has length 0 and would count as False.
        self.sampler = KeepSampler(num_examples, seed) if sampler is None else sampler
        self.sentinels: Sentinels | None = None
        self._dataset = dataset
        self._planted = False  # by `plant`
        self._watch_loader = dataset is not None and counterfactual == "sentinels"
        if counterfactual == "sentinels":
            self.sentinels = Sentinels(num_examples, num_classes, statistic, seed)
            if dataset is not None:
                dataset.plant(self.sentinels.indices, self.sentinels.shifts, num_classes)
        self.stopwatch = Stopwatch()
        self.epoch = 0
        self.verdict: Verdict | None = None
        # Given labels as observed, so that no class is emptied, and beside margins the losses;
        # one spare slot for bad indices.
        dtype = torch.int16 if num_classes < 2**15 else torch.int32
        self._labels = torch.full((num_examples + 1,), -1, dtype=dtype)
        self._losses = torch.full((num_examples + 1 if self.sentinels else 0,), torch.nan)

    def plant(self, index: Tensor, labels: Tensor) -> Tensor:
        """The labels to train with. Given an `IndexedDataset`, that has already seen to it."""
        if self.sentinels is None or self.verdict is not None or self._dataset is not None:
            return labels
        self._planted = True
        with self.stopwatch(labels.device):
            return self.sentinels.plant(index, labels)

    @torch.no_grad()
    def observe(self, index: Tensor, logits: Tensor, labels: Tensor) -> None:
        """Note a batch: indices (B,), logits (B, K) of the ordinary forward pass, labels (B,).

        `labels` are those you train with. Losses and margins are computed here in fp32,
        whatever loss you train with.
        """
        if self.verdict is not None:
            return  # the verdict stands; nothing more to learn
        if self.sentinels and self._dataset is None and not self._planted:
            raise InputError(
                "sentinels are not planted: train with labels = denoiser.plant(index, labels),"
                " or hand Denoiser the IndexedDataset that your loader reads"
            )
        with self.stopwatch(logits.device):
            labels = labels.to(logits.device, non_blocking=True)
            if logits.device.type == "cpu":
                self._check_labels(labels)
            logits = logits.detach().float()
            if self.sentinels is None:
                slots = self.ledger.record(index, plain_losses(logits, labels))
            else:
                slots, labels = self._observe_margins(self.sentinels, index, logits, labels)
            if self._labels.device != labels.device:
                self._labels = self._labels.to(labels.device)
            self._labels.scatter_(0, slots, labels.to(self._labels.dtype))

    def end_epoch(self, model: nn.Module) -> Verdict | None:
        """Close the epoch; after epoch E judge, prune the sampler, and return the verdict."""
        self.epoch += 1
        self.sampler.set_epoch(self.epoch)
        self.stopwatch.settle()
        if self.verdict is not None:
            return None
        with self.stopwatch(self._labels.device):
            self._check_loader()
            self._share_losses()
            self.ledger.close_epoch()
            if self.sentinels:
                self.sentinels.close_epoch()
            if not self._is_time():
                return None
            self.verdict = self._judge(model)
            self.sampler.set_keep(self.verdict.keep)
            if self._dataset is not None:
                self._dataset.restore()
        return self.verdict

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
            "losses": self._losses,
            "ledger": self.ledger.state_dict(),
            "sampler": self.sampler.state_dict(),
            "sentinels": self.sentinels and self.sentinels.state_dict(),
            "verdict": self.verdict and self.verdict.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if (state["sentinels"] is None) != (self.sentinels is None):
            saved = "sentinels" if state["sentinels"] else "weights"
            raise InputError(f"the saved run had counterfactual='{saved}', this one has not")
        self.ledger.load_state_dict(state["ledger"])
        self.sampler.load_state_dict(state["sampler"])
        self.epoch, self.stopwatch = state["epoch"], Stopwatch(state["seconds"])
        self._labels, self._losses = state["labels"].clone(), state["losses"].clone()
        self._watch_loader = False  # what was seen before the break came out of another process
        if self.sentinels:
            self.sentinels.load_state_dict(state["sentinels"])
            if self._dataset is not None:
                self._dataset.plant(self.sentinels.indices, self.sentinels.shifts, self.num_classes)
        self.verdict = state["verdict"] and Verdict.from_state(state["verdict"])
        if self.verdict and self._dataset is not None:
            self._dataset.restore()

    def _observe_margins(
        self, sentinels: Sentinels, index: Tensor, logits: Tensor, labels: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Record margins and losses under the given labels; returns slots and given labels."""
        index = index.to(labels.device, non_blocking=True)
        given, scores, losses = sentinels.observe(index, logits, labels)
        slots = self.ledger.record(index, scores)
        if self._losses.device != logits.device:
            self._losses = self._losses.to(logits.device)
        self._losses.scatter_(0, slots, losses)
        return slots, given

    def _check_loader(self) -> None:
        """Once, after the first epoch: did the labels that were observed come from our dataset?"""
        if self._watch_loader and self._dataset is not None and self.sentinels:
            self._watch_loader = False
            seen = not bool(self.sentinels.ledger.current.isnan().all())
            if seen and not self._dataset.handed_out:
                raise InputError(
                    "no planted label came out of the IndexedDataset given to Denoiser: let the"
                    " loader read that one, and make it after the Denoiser"
                )

    def _share_losses(self) -> None:
        """Every rank gets this epoch's losses of all examples, older ones of those not seen."""
        if self.sentinels and dist.is_available() and dist.is_initialized():
            fresh = torch.where(self.ledger.current.isnan(), torch.nan, self._losses[:-1])
            merge_mean(fresh)
            self._losses[:-1] = torch.where(fresh.isnan(), self._losses[:-1], fresh)

    def _is_time(self) -> bool:
        if self.prune_after is not None:
            return self.epoch == self.prune_after
        assert self.sentinels and self.epochs
        return self.sentinels.say_now(self.epochs, self.ledger.values)

    def _judge(self, model: nn.Module) -> Verdict:
        labels = self._merged_labels()
        if self.sentinels:
            planted = self.sentinels.ledger.values
            planted = planted[~planted.isnan()]  # drop_last may have left some out
            if not len(planted):
                raise InputError("no sentinel was observed, or the model's outputs are NaN")
            counterfactual = Counterfactual.from_losses(planted, "sentinels")
            losses = self._losses[:-1]
        else:
            counterfactual = Counterfactual.from_losses(self._draw(model), "weights")
            losses = self.ledger.values
        return judge(
            scores=self.ledger.values,
            losses=losses,
            labels=labels,
            counterfactual=counterfactual,
            percentile=self.percentile,
            epoch=self.epoch,
            num_classes=self.num_classes,
            strict=self.strict,
        )

    def _draw(self, model: nn.Module) -> Tensor:
        head = find_head(model, self.num_classes, self.head)
        # Drawn where the head is: a GPU takes 0.2 ms for what costs a CPU 50 ms and more.
        generator = torch.Generator(head.weight.device).manual_seed(self.seed)
        drawn = draw_losses(head, self.draws, generator)
        if dist.is_available() and dist.is_initialized():
            dist.broadcast(drawn, 0)  # one threshold, also where ranks run on unlike devices
        return drawn

    def _merged_labels(self) -> Tensor:
        if dist.is_available() and dist.is_initialized():
            labels = self._labels.int()  # neither gloo nor NCCL can reduce int16
            dist.all_reduce(labels, op=dist.ReduceOp.MAX)
            self._labels.copy_(labels)
        return self._labels[:-1]

    def _check_labels(self, labels: Tensor) -> None:
        if not labels.numel():
            return
        low, high = (bound.item() for bound in labels.aminmax())
        if low < 0 or high >= self.num_classes:
            raise InputError(
                f"label {low if low < 0 else high} is outside 0..{self.num_classes - 1}"
            )


def _check_numbers(
    num_classes: int, epochs: int | None, prune_after: int | None, percentile: float, draws: int
) -> None:
    if not 0 <= percentile <= 100:
        raise InputError(f"percentile must be within 0..100, not {percentile:g}")
    if prune_after is None and epochs is None:
        raise InputError("say when to prune: prune_after=E, or epochs=… to find E by itself")
    if prune_after is not None and prune_after < 1:
        raise InputError(f"prune_after counts finished epochs: at least 1, not {prune_after}")
    if epochs is not None and (prune_after or 1) > epochs:
        raise InputError(f"prune_after = {prune_after or 1} lies beyond the {epochs} epochs")
    if draws < 1:
        raise InputError(f"draws must be at least 1, not {draws}")
    if num_classes < 2:
        raise InputError(f"there must be at least 2 classes, not {num_classes}")
