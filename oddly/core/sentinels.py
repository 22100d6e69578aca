"""Examples whose label is really replaced for a while: the counterfactual made factual.

What loss would a random label have had, had it been in the training set? Put a few in and see:
head, optimiser, augmentation and memorisation are then all accounted for.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from oddly.core.counterfactual import Counterfactual
from oddly.core.ledger import LossLedger, merge_mean

SHARE = 0.02  # of the examples are planted, but …
FEWEST, MOST = 300, 5_000  # … not fewer than a percentile needs, nor more than it can use …
LARGEST_SHARE = 0.1  # … and never more than this
EARLIEST, LATEST = 1 / 3, 0.8  # bounds of the automatic E, as shares of all epochs
SMOOTHING = 3  # epochs over which the memorised share is averaged
RISE = 0.03  # how far it must rise above its lowest value, …
DEVIATIONS = 4  # … and by how many standard errors
ENOUGH = 0.97  # estimated F1 from which on waiting gains nothing
TOLERANCE = 0.01  # F1 that close to the best counts as best
EXCESS = 0.2  # removing that many more than seem to be wrong means: not learnt enough yet
SMALLEST = 300  # examples; with fewer, too few could be planted
GRID = 512  # thresholds tried
PROBED = 1_000_000  # examples that estimates look at
HOPELESS = 0.9  # a noise rate that only a network that has learnt nothing would find
ROUNDS = 16  # of halving: the noise rate to 0.002 %
SALT = 0x5E97


class Sentinels:
    """A random few of N examples, each with a label other than its given one, and their scores.

    Scores are margins: how far the best other class lies above the label (negative: the network
    predicts the label, which for a sentinel means that it has memorised it).
    """

    def __init__(self, num_examples: int, num_classes: int, statistic: str, seed: int) -> None:
        self.num_classes = num_classes
        # Not the plain seed: whoever corrupts labels with that seed would pick the same examples.
        generator = torch.Generator().manual_seed(seed + SALT)
        count = how_many(num_examples)
        chosen = torch.randperm(num_examples, generator=generator)[:count]
        self.indices = chosen.sort().values  # (S,)
        self.shifts = torch.randint(1, num_classes, (count,), generator=generator)  # (S,)
        self.ledger = LossLedger(count, statistic)
        self.memorised: list[float] = []
        """Per finished epoch: the share of sentinels whose planted label the network predicts."""

    def find(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """For a batch of indices: the sentinels' places, which rows are sentinels, label shifts."""
        index = index.to(torch.int64)  # as `indices`, which older versions of torch insist on
        if self.indices.device != index.device:
            self.indices, self.shifts = self.indices.to(index.device), self.shifts.to(index.device)
        place = torch.searchsorted(self.indices, index).clamp_(max=len(self.indices) - 1)
        hit = self.indices[place] == index
        return place, hit, torch.where(hit, self.shifts[place], 0)

    def plant(self, index: Tensor, labels: Tensor) -> Tensor:
        """The labels to train with: the given ones, but for sentinels."""
        _, _, shift = self.find(index.to(labels.device, non_blocking=True))
        return (labels + shift) % self.num_classes

    def observe(
        self, index: Tensor, logits: Tensor, labels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Record the sentinels' scores; return each example's given label, score and loss.

        A sentinel is judged like an example the network has not trained on: its planted label
        is no rival to its given one (unless there are but two classes).
        """
        place, planted, shift = self.find(index)
        given = (labels - shift) % self.num_classes
        # Classes first (K, B): along short rows the CPU cannot use its vector units.
        columns = logits.t().clone(memory_format=torch.contiguous_format)  # ours to write in
        own, other = columns.gather(0, torch.stack((given, labels)))
        losses = columns.logsumexp(0) - own
        columns.scatter_(0, given[None], -torch.inf)
        if self.num_classes > 2:
            columns.scatter_(0, labels[None], -torch.inf)
        rival = columns.amax(0)
        best = torch.maximum(rival, own) if self.num_classes > 2 else own
        self.ledger.record(place, best - other, where=planted)
        return given, rival - own, losses

    def close_epoch(self) -> None:
        merge_mean(self.ledger.current)
        scores = self.ledger.current
        seen = ~scores.isnan()
        self.memorised.append(float((scores < 0).sum() / seen.sum().clamp(min=1)))
        self.ledger.close_epoch()

    def say_now(self, epochs: int, scores: Tensor) -> bool:
        """Whether it is time to prune, given the examples' scores (N,).

        The share of memorised sentinels falls while the network learns classes and rises once it
        learns single labels: averaged over three epochs, a rise clear of chance means now. So
        does a separation that can hardly improve, and an epoch after which little would be left.
        """
        finished = len(self.memorised)
        if finished < math.ceil(EARLIEST * epochs):
            return False
        if finished >= max(1, math.floor(LATEST * epochs)):
            return True
        recent = [self._recent(epoch) for epoch in range(1, finished + 1)]
        lowest = min(recent)
        middle = (lowest + recent[-1]) / 2  # not the lowest: 0 of a few would be 0 ± 0
        error = math.sqrt(middle * (1 - middle) / (2 * len(self.indices)))
        if recent[-1] >= lowest + max(RISE, DEVIATIONS * error):
            return True
        return self._estimate_f1(scores) >= ENOUGH

    def state_dict(self) -> dict[str, Any]:
        return {
            "indices": self.indices,
            "shifts": self.shifts,
            "memorised": list(self.memorised),
            "ledger": self.ledger.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.indices, self.shifts = state["indices"].clone(), state["shifts"].clone()
        self.memorised = list(state["memorised"])
        self.ledger.load_state_dict(state["ledger"])

    def _estimate_f1(self, scores: Tensor) -> float:
        ordered, planted = _sample(scores), _sample(self.ledger.values)
        if not len(ordered) or not len(planted):
            return 0.0
        return estimate_cut(ordered, planted, self.num_classes).f1

    def _recent(self, epoch: int) -> float:
        window = self.memorised[max(0, epoch - SMOOTHING) : epoch]
        return sum(window) / len(window)


def how_many(num_examples: int) -> int:
    """2 %, at least 300, at most 5,000, never more than a tenth of the examples."""
    wanted = min(max(FEWEST, round(SHARE * num_examples)), MOST)
    return max(1, min(wanted, int(LARGEST_SHARE * num_examples)))


def correct_percentile(percentile: float, noise_rate: float, num_classes: int) -> float:
    """The percentile of all sentinels that is the p-th of the truly wrong ones.

    A sentinel on a mislabelled example gets the true label with probability 1 / (K - 1); those,
    η / (K - 1) of all, have low scores and say nothing about wrong labels.
    """
    right = min(noise_rate / (num_classes - 1), 0.9)
    return 100 * (right + percentile / 100 * (1 - right))


def cut_by_sentinels(
    scores: Tensor, sentinels: Counterfactual, percentile: float, num_classes: int
) -> tuple[float, tuple[float, float, float]]:
    """The threshold, and the share of wrong labels that it implies with a lower and an upper one.

    The rate is the share of examples above the cut, its interval what twice and half the
    percentile would give. It speaks of labels that look random; human confusions hide better.

    A fixed percentile gives recall away where right and wrong labels hardly overlap, and most
    right labels where a network has hardly learnt yet: there the cut is the one with the best
    estimated F1 (`estimate_cut`).
    """
    ordered = _sample(scores)
    threshold, rate = _settle(ordered, sentinels, percentile, num_classes)
    _, low = _settle(ordered, sentinels, min(2 * percentile, 100), num_classes)
    _, high = _settle(ordered, sentinels, percentile / 2, num_classes)
    best = estimate_cut(ordered, sentinels.losses, num_classes)
    if best.f1 >= ENOUGH:
        threshold = min(threshold, best.lowest)
    elif rate > best.noise_rate + EXCESS:
        threshold, rate = best.threshold, best.noise_rate
        low, high = min(low, rate), max(high, rate)
    return threshold, (rate, low, high)


def _settle(
    ordered: Tensor,
    sentinels: Counterfactual,
    percentile: float,
    num_classes: int,
    recall: float = 1.0,
) -> tuple[float, float]:
    """The threshold, and the noise rate: the share of examples above it, over `recall`.

    The more noise is assumed, the higher the threshold and the less lies above: the rate where
    both agree is found by halving. (Taking turns would swing to and fro where classes are few.)
    """
    low, high, threshold, rate = 0.0, 1.0, math.nan, 0.0
    for _ in range(ROUNDS):
        assumed = (low + high) / 2
        threshold = sentinels.threshold(correct_percentile(percentile, assumed, num_classes))
        rate = min(_share_above(ordered, threshold) / recall, 1.0)
        low, high = (assumed, high) if rate > assumed else (low, assumed)
    return threshold, rate


class BestCut(NamedTuple):
    """The threshold with the best F1 that can be expected, and what it rests on."""

    threshold: float
    lowest: float
    """The lowest threshold whose F1 is as good within the estimate's accuracy."""
    f1: float
    noise_rate: float


def estimate_cut(ordered: Tensor, sentinels: Tensor, num_classes: int) -> BestCut:
    """The cut with the best F1, were all wrong labels as random as the sentinels'.

    Recall R(T) is the share of sentinels above T, the noise rate η what the upper half of the
    sentinels implies, and F1 = 2 η R / (share of examples above T + η).
    """
    wrapped = Counterfactual(sentinels, "sentinels")
    upper, rate = _settle(ordered, wrapped, 50.0, num_classes, recall=0.5)
    right = min(rate / (num_classes - 1), 0.9)
    cuts = torch.linspace(float(sentinels[0]), upper, GRID)
    recall = 1 - torch.searchsorted(sentinels, cuts) / len(sentinels)
    recall = recall.div(1 - right).clamp(max=1)
    flagged = 1 - torch.searchsorted(ordered, cuts) / len(ordered)
    flagged = flagged.maximum(rate * recall)  # no fewer than are found, lest F1 exceed 1
    f1 = 2 * rate * recall / (flagged + rate).clamp(min=1e-12)
    # Where right labels look as wrong as the sentinels, "all are wrong" would be a perfect guess.
    f1 = f1 * (rate + right < HOPELESS)
    lowest = int((f1 >= f1.max() - TOLERANCE).nonzero()[0])
    return BestCut(float(cuts[f1.argmax()]), float(cuts[lowest]), float(f1.max()), rate)


def _sample(scores: Tensor) -> Tensor:
    """The known scores in ascending order; of very many an even few, which tell shares as well."""
    scores = scores[:: max(1, len(scores) // PROBED)].cpu()
    return scores[scores.isfinite()].sort().values


def _share_above(ordered: Tensor, threshold: float) -> float:
    """Of ascending scores, the share at or above the threshold."""
    below = int(torch.searchsorted(ordered, torch.tensor(threshold)))
    return 1 - below / max(1, len(ordered))
