"""On-the-fly data denoising for any training loop: observe every step, end every epoch."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from oddly.core.backlog import Backlog
from oddly.core.counterfactual import Counterfactual, draw_alike, plain_losses
from oddly.core.head import find_head
from oddly.core.indexed import IndexedDataset
from oddly.core.judging import judge, judge_by_sentinels
from oddly.core.ledger import LossLedger
from oddly.core.observed import Observed, find_occurring
from oddly.core.ranks import anywhere
from oddly.core.rule import Rule, check_batch, check_setup, check_state, usual_counterfactual
from oddly.core.sampler import KeepSampler
from oddly.core.sentinels.planting import Scored, Sentinels
from oddly.core.sentinels.wrong_label import WrongLabels
from oddly.core.stopwatch import Stopwatch
from oddly.core.verdict import Verdict
from oddly.core.warn import PASSES, missed_many, warn_unclosed, warn_unless_kept, warn_unseen
from oddly.errors import InputError


class Denoiser:
    """The paper's Algorithm 1 for your own training loop.

        train_set = IndexedDataset(train_set)
        denoiser = Denoiser(train_set, num_classes=10, epochs=40)
        loader = DataLoader(train_set, 128, sampler=denoiser.sampler)
        for epoch in range(40):
            for inputs, labels, index in loader:
                logits = model(inputs)
                denoiser.observe(index, logits, labels)
                ...                               # your loss, backward, step
            verdict = denoiser.end_epoch(model)   # a Verdict once, after epoch E
        verdict = denoiser.judge_now(model)       # if you stop before E

    `counterfactual` sets what labels are compared with:

    - `sentinels` (default): a few labels are replaced until E, and an example is removed if its
      margin is no better than most of theirs. E is found automatically.
    - `weights`: the paper's q_n, from the final layer's weights only. It needs no access to the
      data, so it is the default if you pass only the number of examples.
    - `wrong_label`: the losses of made-up wrong labels; works with any network, without planting.
      The default for fewer than 100 examples.

    Other settings: `epochs`, how long you will train; `prune_after`, E itself; `percentile` of
    the counterfactual at which to cut (higher removes less; with sentinels 6 to 15 by default,
    chosen from the noise), or instead `target_precision`, the share of removed labels that should
    be wrong; `statistic`, the `last` epoch or the average (`ema`); for `weights` only, `draws`,
    the number of losses to draw, and `head`, the dotted name of the final layer if it is not
    found; `strict`, to refuse a verdict that would empty a class; `sampler`, to use your own.
    """

    warns = True  # about unreliable verdicts; set to False if you report `cautions()` yourself

    def __init__(
        self,
        examples: IndexedDataset | int,
        num_classes: int,
        epochs: int | None = None,
        prune_after: int | None = None,
        percentile: float | None = None,
        counterfactual: str | None = None,
        statistic: str | None = None,
        target_precision: float | None = None,
        draws: int = 20_000,
        head: str | None = None,
        seed: int = 0,
        strict: bool = False,
        sampler: KeepSampler | None = None,
    ) -> None:
        check_setup(examples, num_classes, draws)
        dataset = None if isinstance(examples, int) else examples
        num_examples = examples if isinstance(examples, int) else len(examples)
        self.rule = Rule.choose(
            usual=usual_counterfactual(num_examples, dataset is not None, statistic),
            counterfactual=counterfactual,
            statistic=statistic,
            percentile=percentile,
            epochs=epochs,
            prune_after=prune_after,
            target_precision=target_precision,
        )
        self.num_classes, self.seed, self.strict = num_classes, seed, strict
        self.draws, self.head = draws, head
        self.ledger = LossLedger(num_examples, self.rule.statistic)
        # Not `sampler or …`: at the end of an epoch a sampler has length 0, which counts as False.
        self.sampler = KeepSampler(num_examples, seed) if sampler is None else sampler
        self._dataset, self._planted = dataset, False  # _planted: whether `plant` was called
        self._watch_pruning = dataset is not None  # whether that is still to be checked
        self._choose_few(num_examples)
        self._observed = Observed(num_examples, num_classes, margins=self.sentinels is not None)
        self.epoch, self.stopwatch, self._backlog = 0, Stopwatch(), Backlog()
        self._unclosed = 0  # observations since the last end of an epoch
        self.verdict: Verdict | None = None

    def _choose_few(self, num_examples: int) -> None:
        """Choose the examples that the counterfactual needs, and plant sentinels in the dataset."""
        self.sentinels: Sentinels | None = None
        self.wrong_labels: WrongLabels | None = None
        kind, classes = self.rule.counterfactual, self.num_classes
        if kind == "wrong_label":
            self.wrong_labels = WrongLabels(num_examples, classes, self.seed)
        if kind == "sentinels":
            about = self.rule.statistic, self.seed, self._dataset
            self.sentinels = Sentinels(num_examples, classes, *about)

    def plant(self, index: Tensor, labels: Tensor) -> Tensor:
        """The labels to train on; unchanged if an `IndexedDataset` already planted sentinels."""
        if self.sentinels is None or self.verdict is not None or self._dataset is not None:
            return labels
        self._planted = True
        with self.stopwatch(labels.device):
            return self.sentinels.plant(index, labels)

    @torch.no_grad()
    def observe(self, index: Tensor, logits: Tensor, labels: Tensor) -> None:
        """Record a batch: indices (B,), logits (B, K) of your forward pass, and labels (B,).

        `labels` are those you train on. Losses and margins are computed here, in fp32.
        """
        if self.verdict is not None:
            self._observed.compare(index, labels)
            if self._watch_pruning:
                self._watch_pruning = False
                warn_unless_kept(index, self.verdict.keep)
            return  # the verdict is made: nothing left to record
        if self.sentinels and self._dataset is None and not self._planted:
            raise InputError(
                "no sentinels planted: train on labels = denoiser.plant(index, labels), or pass"
                " Denoiser the IndexedDataset that your loader reads"
            )
        check_batch(index, logits, labels, self.num_classes)
        with self.stopwatch(logits.device):
            before, self._unclosed = self._unclosed, self._unclosed + len(index)
            if logits.device.type == "cpu":
                self._note(index, logits.detach().float(), labels.cpu())
            elif self._backlog.add(index, logits, labels):
                self._catch_up()
        if before <= PASSES * self.ledger.num_examples < self._unclosed and not self.epoch:
            warn_unclosed(self._unclosed, self.ledger.num_examples)

    @torch.no_grad()
    def _catch_up(self) -> None:
        """Record the batches that wait in the backlog."""
        if (waiting := self._backlog.take()) is not None:
            self._note(*waiting)

    def _note(self, index: Tensor, logits: Tensor, labels: Tensor) -> None:
        if self.sentinels:
            index = index.to(logits.device, non_blocking=True)
            scored, losses = self.sentinels.observe(index, logits, labels)
            self._observed.compare(index, scored.labels)
            slots = self.ledger.record(index, scored.scores)
            self._observed.write(slots, labels=scored.labels, losses=losses, rivals=scored.rivals)
            return
        self._observed.compare(index, labels)
        slots = self.ledger.record(index, plain_losses(logits, labels))
        self._observed.write(slots, labels=labels)
        if self.wrong_labels:
            self.wrong_labels.observe(index, logits, labels)

    def end_epoch(self, model: nn.Module) -> Verdict | None:
        """End the epoch; after epoch E, judge, prune the sampler and return the verdict."""
        if not self._close_epoch(model):
            return None
        with self.stopwatch(self._observed["labels"].device):
            return self._conclude(model) if not self._begin_again() and self._is_time() else None

    def _close_epoch(self, model: nn.Module) -> bool:
        """Take in what was observed; whether there is a verdict to be made."""
        self.epoch, self._unclosed = self.epoch + 1, 0
        self.sampler.set_epoch(self.epoch)
        self.stopwatch.settle()
        if self.verdict is not None:
            return False
        if self.epoch == 1 and self.rule.counterfactual == "weights":
            find_head(model, self.num_classes, self.head)  # fail now rather than at E
        with self.stopwatch(self._observed["labels"].device):
            self._catch_up()
            weight = 1.0
            if self.sentinels:
                self.sentinels.check_loader(self._observed["labels"])
                self._observed.share(self.ledger.current)
                self.ledger.merge()
                if self.epoch == 1 and self._dataset is not None and self.warns:
                    warn_unseen(self._observed["rivals"] >= 0)
                weight = self.sentinels.close_epoch(self.ledger.current)
            self.ledger.close_epoch(weight)
            if self.wrong_labels:
                self.wrong_labels.ledger.close_epoch()
        return True

    def _begin_again(self) -> bool:
        """If many planted labels are of classes without examples: plant others, forget the past."""
        few, last = self.sentinels or self.wrong_labels, self.rule.prune_after or self.rule.epochs
        if few is None or self.epoch == last:  # now or never
            return False
        given = self._observed.given()
        if (self.epoch == 1 and missed_many(given >= 0)) or not few.keep_to_classes(given):
            return False
        self.ledger.forget()
        return True

    def judge_now(self, model: nn.Module) -> Verdict:
        """The verdict; if training stopped before E, based on what was observed so far."""
        device = self._observed["labels"].device
        if self.verdict is None and anywhere(self._unclosed > 0, device):
            self._close_epoch(model)  # the one that was interrupted
        if self.verdict is None and self.ledger.is_empty:
            raise InputError("nothing to judge: no example was observed in an epoch that counts")
        with self.stopwatch(device):
            return self.verdict or self._conclude(model)

    def _conclude(self, model: nn.Module) -> Verdict:
        self.verdict = self._judge(model)
        self.sampler.set_keep(self.verdict.keep)
        if self._dataset is not None:
            self._dataset.restore()
        for caution in self.verdict.cautions() if self.warns else ():
            warnings.warn(caution, stacklevel=3)
        return self.verdict

    def reconsider(self, index: Tensor, logits: Tensor) -> Verdict:
        """Update the verdict with what the network now says about removed examples.

        `index` (M,) are removed examples and `logits` (M, K) the network's outputs for them, best
        without augmentation and in evaluation mode. Some are kept again. Returns the new verdict.
        """
        if self.verdict is None:
            raise InputError("no verdict to reconsider yet: call this after epoch E")
        with self.stopwatch(logits.device):
            self.verdict = self.verdict.readmit(index, logits)
            self.sampler.set_keep(self.verdict.keep)
        return self.verdict

    @property
    def seconds(self) -> float:
        """Time spent denoising so far."""
        return self.stopwatch.seconds

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to continue: tensors and plain numbers only."""
        self._catch_up()
        return {
            "epoch": self.epoch,
            "unclosed": self._unclosed,
            "seconds": self.seconds,
            **self._observed.state_dict(),
            "ledger": self.ledger.state_dict(),
            "sampler": self.sampler.state_dict(),
            "sentinels": self.sentinels and self.sentinels.state_dict(),
            "wrong_labels": self.wrong_labels and self.wrong_labels.state_dict(),
            "verdict": self.verdict and self.verdict.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        check_state(state, sentinels=self.sentinels, wrong_labels=self.wrong_labels)
        self._backlog = Backlog()  # batches of before the restore do not count
        self.stopwatch = Stopwatch(state["seconds"])
        self.ledger.load_state_dict(state["ledger"])
        self.sampler.load_state_dict(state["sampler"])
        self.epoch, self._unclosed = state["epoch"], state.get("unclosed", 0)  # older ones lack it
        self._observed.load_state_dict(state)
        if self.sentinels:
            self.sentinels.load_state_dict(state["sentinels"])
        if self.wrong_labels:
            self.wrong_labels.load_state_dict(state["wrong_labels"])
        self.verdict = state["verdict"] and Verdict.from_state(state["verdict"])
        if self.verdict and self._dataset is not None:
            self._dataset.restore()

    def _is_time(self) -> bool:
        if self.rule.prune_after is not None or not (self.sentinels and self.rule.epochs):
            return self.epoch == self.rule.prune_after
        return self.sentinels.say_now(self.rule.epochs, self.ledger.values)

    def _judge(self, model: nn.Module) -> Verdict:
        labels = self._observed.given()
        percentile, about = self.rule.percentile, (self.epoch, self.num_classes, self.strict)
        if self.sentinels:
            examples = Scored(self.ledger.values, labels, self._observed["rivals"])
            planted, losses = self.sentinels.scored(labels), self._observed["losses"]
            aim = self.rule.target_precision
            return judge_by_sentinels(examples, losses, planted, percentile, *about, aim)
        if self.wrong_labels:
            losses = self.wrong_labels.losses()
        else:
            head = find_head(model, self.num_classes, self.head)
            occurring = find_occurring(labels, self.num_classes)
            losses = draw_alike(head, self.draws, self.seed, occurring)
        drawn = Counterfactual.from_losses(losses, self.rule.counterfactual)
        assert percentile is not None  # `Rule` leaves it open for sentinels only
        return judge(self.ledger.values, labels, drawn, percentile, *about)
