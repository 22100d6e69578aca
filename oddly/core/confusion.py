"""Whose labels are confused with whose: what a score means for this label and that rival.

A score alone treats all labels alike. But some classes are hard or rare, so that even sound labels
score high; and some wrong labels are frequent, because people take wolves for dogs rather than for
aeroplanes. Both can be read off the run itself.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from oddly.core.counterfactual import Counterfactual
from oddly.core.cut import correct_percentile, probe
from oddly.core.sentinels import Scored

SIZES = 0.2  # of the logarithm of how many times larger the rival's class is: docs/constants.md
ALIKE = 3.0  # times as large is no larger: wrong labels make that of equal classes
PULL = 100  # sentinels of a class that weigh as much as all others
STRENGTH = 1.5  # how much a pair's frequency weighs beside the score
CAUTION = 10  # examples of every class and wrong labels of every pair that count beforehand
LARGEST = 2.0  # natural logarithm of the largest frequency ratio that is believed
TURNS = 12  # of asking who is wrong, then which pairs are frequent
MOST_CLASSES = 1_000  # with more, there are too many pairs to count
CHUNK = 2**22  # examples shifted at a time


def find_shifts(examples: Scored, sentinels: Scored, percentile: float, num_classes: int) -> Tensor:
    """What to add to a score by label and rival (K, K), so that one threshold suits all.

    Labels alone count, (K, 1), where there are too many classes for pairs.
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

    From the n sentinels that carry the class, drawn towards 0 by n / (n + 100).
    """
    counts = torch.bincount(sentinels.labels, minlength=num_classes)
    sums = torch.bincount(sentinels.labels, sentinels.scores.double(), num_classes)
    return ((sums - counts * sentinels.scores.double().mean()) / (counts + PULL)).float()


def pair_shifts(examples: Scored, sentinels: Scored, percentile: float, num_classes: int) -> Tensor:
    """How much frequent pairs of label and rival gain (K, K), and rare ones lose.

    With odds that grow with the score m as exp((m - T) / S), a pair that occurs r times as often
    among wrong labels as random ones would make it has its own threshold T - S·log r. T is the
    sentinels' p-th percentile; S follows from taking a score of 0, where label and rival are
    equally likely, for evidence of nothing but what is known beforehand. Who is wrong and which
    pairs are frequent depend on each other: a few turns settle it.
    """
    pairs, planted = (
        g.labels.long() * num_classes + g.rivals.long() for g in (examples, sentinels)
    )
    counts = torch.bincount(examples.labels.long(), minlength=num_classes).double()
    shifts, rate = torch.zeros(num_classes**2), 0.2
    for _ in range(TURNS):
        wrong_ones = Counterfactual.from_losses(sentinels.scores + shifts[planted], "sentinels")
        threshold = wrong_ones.threshold(correct_percentile(percentile, rate, num_classes))
        odds = max((1 - rate) * (num_classes - 1) / rate, 2.0)  # against a pair, beforehand
        scale = STRENGTH * max(threshold, 0.05) / math.log(odds)
        suspicion = ((examples.scores + shifts[pairs] - threshold) / scale).sigmoid()
        rate = min(max(float(suspicion.mean()), 0.005), 0.9)
        wrong = torch.bincount(pairs, suspicion.double(), num_classes**2)
        ratios = log_ratios(wrong.view(num_classes, num_classes), counts)
        shifts = (shifts + (scale * ratios).float().flatten()) / 2  # half-way, lest it swing
    return shifts.view(num_classes, num_classes)


def log_ratios(wrong: Tensor, counts: Tensor) -> Tensor:
    """log r (K, K): how often pairs are wrong, over how often random labels would make them so.

    `wrong` (K, K) says how many of which label and rival, `counts` (K,) how many of each label
    there are.
    """
    truly = (counts - wrong.sum(1) + wrong.sum(0)).clamp(min=0)  # (K,) by what they really are
    random = wrong.sum() * truly / truly.sum().clamp(min=1) / (len(counts) - 1)  # (K,) by rival
    return ((wrong + CAUTION) / (random + CAUTION)).log().clamp(-LARGEST, LARGEST)


def size_shifts(labels: Tensor, num_classes: int) -> Tensor:
    """How much less is held against labels of a class that is smaller than the rival's (K, K).

    In doubt a network says the larger class, and of a rare one it learns little, so that even sound
    labels score high. For examples alone: sentinels say what wrong labels of any class score.
    Nothing where classes are alike in size. With too many for pairs (K, 1): against labels of a
    class that is smaller than the average label's.
    """
    few = labels[probe(len(labels))].cpu().long()
    counts = torch.bincount(few[few >= 0], minlength=num_classes)
    sizes = (counts + CAUTION).log()
    spread = float(sizes.max() - sizes[counts > 0].min()) if counts.any() else 0.0
    unlike = min(max(spread / math.log(ALIKE) - 1, 0.0), 1.0)  # whole from the square on
    gains = SIZES * unlike * sizes
    rivals = gains
    if num_classes > MOST_CLASSES:
        rivals = (gains * counts).sum(0, keepdim=True) / counts.sum().clamp(min=1)
    return (gains[:, None] - rivals).clamp(max=0)


def probe_known(examples: Scored) -> Scored:
    """Those that have a score, or of so many those among a random million; on the CPU."""
    few = probe(len(examples.scores))
    return Scored(*(column[few].cpu() for column in examples)).known()


def look_up(shifts: Tensor, scored: Scored) -> Tensor:
    """The shift of each example (N,)."""
    labels = scored.labels.long()
    return shifts[labels, scored.rivals.long() if shifts.shape[1] > 1 else 0]


def shift_(scored: Scored, shifts: Tensor) -> None:
    """Add the shifts to the scores, in place and a part at a time: there may be many."""
    for start in range(0, len(scored.scores), CHUNK):
        part = Scored(*(column[start : start + CHUNK] for column in scored))
        part.scores.add_(look_up(shifts, part))
