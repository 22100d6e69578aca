"""Adjust scores for the label and its rival, so that one threshold suits all pairs.

The same score does not mean the same for all labels. Some classes are hard or rare, so even right
labels score high. And some confusions are more frequent than others: people mistake wolves for
dogs, not for aeroplanes. Both can be estimated from the run itself.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from oddly.core.counterfactual import Counterfactual
from oddly.core.sentinels.cut import correct_percentile, probe
from oddly.core.sentinels.planting import Scored

SIZES = 0.2  # weight of the logarithm of the ratio of class sizes: docs/constants.md
ALIKE = 3.0  # ratios up to this count as equal: wrong labels alone can cause them
PULL = 100  # a class's own mean counts as much as the overall mean at this many sentinels
STRENGTH = 1.5  # weight of a pair's frequency relative to the score
CAUTION = 10  # pseudo-count, of examples per class and of wrong labels per pair
LARGEST = 2.0  # bound on the natural logarithm of a frequency ratio
TURNS = 12  # iterations of estimating which labels are wrong, then which pairs are frequent
MOST_CLASSES = 1_000  # with more, there are too many pairs to count
CHUNK = 2**22  # examples shifted at a time


def find_shifts(examples: Scored, sentinels: Scored, percentile: float, num_classes: int) -> Tensor:
    """What to add to a score, by label and rival (K, K), so that one threshold suits all.

    With too many classes for pairs, by label only (K, 1).
    """
    shifts = -class_offsets(sentinels, num_classes)[:, None]
    if num_classes > MOST_CLASSES:
        return shifts
    probed = probe_known(examples)
    probed, sentinels = (
        group._replace(scores=group.scores + look_up(shifts, group))
        for group in (probed, sentinels)
    )
    return shifts + pair_shifts(probed, sentinels, percentile, num_classes)


def class_offsets(sentinels: Scored, num_classes: int) -> Tensor:
    """How much higher wrong labels of each class score than wrong labels do on average (K,).

    Estimated from the n sentinels planted with the class, shrunk towards 0 by n / (n + 100).
    """
    counts = torch.bincount(sentinels.labels, minlength=num_classes)
    sums = torch.bincount(sentinels.labels, sentinels.scores.double(), num_classes)
    return ((sums - counts * sentinels.scores.double().mean()) / (counts + PULL)).float()


def pair_shifts(examples: Scored, sentinels: Scored, percentile: float, num_classes: int) -> Tensor:
    """What to add for frequent pairs of label and rival (K, K), and to subtract for rare ones.

    Assume that the odds of a wrong label grow with the score m as exp((m - T) / S). A pair that is
    r times as frequent among wrong labels as random labels would make it then has the threshold
    T - S·log r. T is the sentinels' p-th percentile. S is chosen so that a score of 0, where label
    and rival are equally likely, leaves the prior odds as they are. Which labels are wrong and
    which pairs are frequent depend on each other, so both are estimated in turn a few times.
    """
    pairs, planted = (
        g.labels.long() * num_classes + g.rivals.long() for g in (examples, sentinels)
    )
    counts = torch.bincount(examples.labels.long(), minlength=num_classes).double()
    shifts, rate = torch.zeros(num_classes**2), 0.2
    for _ in range(TURNS):
        wrong_ones = Counterfactual.from_losses(sentinels.scores + shifts[planted], "sentinels")
        threshold = wrong_ones.threshold(correct_percentile(percentile, rate, num_classes))
        odds = max((1 - rate) * (num_classes - 1) / rate, 2.0)  # prior odds against a pair
        scale = STRENGTH * max(threshold, 0.05) / math.log(odds)
        suspicion = ((examples.scores + shifts[pairs] - threshold) / scale).sigmoid()
        rate = min(max(float(suspicion.mean()), 0.005), 0.9)
        wrong = torch.bincount(pairs, suspicion.double(), num_classes**2)
        ratios = log_ratios(wrong.view(num_classes, num_classes), counts)
        shifts = (shifts + (scale * ratios).float().flatten()) / 2  # damped, to converge
    return shifts.view(num_classes, num_classes)


def log_ratios(wrong: Tensor, counts: Tensor) -> Tensor:
    """log r (K, K): how often a pair is wrong, relative to how often random labels would be.

    `wrong` (K, K) is the number of wrong labels by label and rival, `counts` (K,) the number of
    examples of each label.
    """
    truly = (counts - wrong.sum(1) + wrong.sum(0)).clamp(min=0)  # (K,) examples by true class
    random = wrong.sum() * truly / truly.sum().clamp(min=1) / (len(counts) - 1)  # (K,) by rival
    return ((wrong + CAUTION) / (random + CAUTION)).log().clamp(-LARGEST, LARGEST)


def size_shifts(labels: Tensor, num_classes: int) -> Tensor:
    """What to add, at most 0, if the label's class is smaller than the rival's (K, K).

    In doubt, a network predicts the larger class, and it learns little about a rare one, so even
    right labels of rare classes score high. Only for examples, not for sentinels, whose scores show
    what wrong labels of a class look like. Zero if all classes are about equal in size. With too
    many classes for pairs, relative to the average label's class size (K, 1).
    """
    few = labels[probe(len(labels))].cpu().long()
    counts = torch.bincount(few[few >= 0], minlength=num_classes)
    sizes = (counts + CAUTION).log()
    spread = float(sizes.max() - sizes[counts > 0].min()) if counts.any() else 0.0
    unlike = min(max(spread / math.log(ALIKE) - 1, 0.0), 1.0)  # 1 from a ratio of ALIKE² on
    gains = SIZES * unlike * sizes
    rivals = gains
    if num_classes > MOST_CLASSES:
        rivals = (gains * counts).sum(0, keepdim=True) / counts.sum().clamp(min=1)
    return (gains[:, None] - rivals).clamp(max=0)


def probe_known(examples: Scored) -> Scored:
    """The examples that have a score (of very many, those in a random million), on the CPU."""
    few = probe(len(examples.scores))
    return Scored(*(column[few].cpu() for column in examples)).known()


def look_up(shifts: Tensor, scored: Scored) -> Tensor:
    """The shift of each example (N,)."""
    labels = scored.labels.long()
    return shifts[labels, scored.rivals.long() if shifts.shape[1] > 1 else 0]


def shift_(scored: Scored, shifts: Tensor) -> None:
    """Add the shifts to the scores, in place and in chunks, to save memory."""
    for start in range(0, len(scored.scores), CHUNK):
        part = Scored(*(column[start : start + CHUNK] for column in scored))
        part.scores.add_(look_up(shifts, part))
