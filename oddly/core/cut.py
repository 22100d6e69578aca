"""Where to cut: a threshold on scores, from the scores of sentinels."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from oddly.core.counterfactual import Counterfactual
from oddly.core.rule import PERCENTILES

SHALLOW = 0.8  # of the lower hill beside it: what is no lower is no valley
SMOOTHING = 0.06  # of the distance from right labels to sentinels
PLOTTED = 8_192  # examples that show where the valley is
VALLEY_GRID = 256  # places where it may be
GRID = 512  # thresholds tried
PROBED = 1_000_000  # examples that estimates look at
HOPELESS = 0.9  # a noise rate that only a network that has learnt nothing would find
ROUNDS = 16  # of halving: the noise rate to 0.002 %
SALT = 0xC07


def correct_percentile(percentile: float, noise_rate: float, num_classes: int) -> float:
    """The percentile of all sentinels that is the p-th of the truly wrong ones.

    A sentinel on a mislabelled example gets the true label with probability 1 / (K - 1); those,
    η / (K - 1) of all, have low scores and say nothing about wrong labels.
    """
    right = _share_right(noise_rate, num_classes)
    return 100 * (right + percentile / 100 * (1 - right))


def original_percentile(corrected: float, noise_rate: float, num_classes: int) -> float:
    """Whose `correct_percentile` this is."""
    right = _share_right(noise_rate, num_classes)
    return 100 * (corrected / 100 - right) / (1 - right)


def _share_right(noise_rate: float, num_classes: int) -> float:
    """Of the sentinels, those that got a mislabelled example's true label."""
    return min(noise_rate / (num_classes - 1), 0.9)


def cut_by_sentinels(
    scores: Tensor,
    sentinels: Counterfactual,
    percentile: float,
    num_classes: int,
    target_precision: float | None = None,
    trust: float | None = 1.0,
    named: bool = False,
) -> tuple[float, tuple[float, float, float]]:
    """The threshold, and the share of wrong labels that it implies with a lower and an upper one.

    The rate is the share of examples above the cut, as far as it is believed. It speaks of labels
    that look random; human confusions hide better.

    A percentile gives recall away where right and wrong labels hardly overlap: there the cut goes
    down into the valley between them, unless somebody `named` the percentile. It gives most right
    labels away where a network has hardly learnt (`trust` 0): there no more go than the sentinels'
    upper half says are wrong, and none where that would be nearly all, or where it has learnt
    nothing (None). Between, `trust` says how far to go beyond that half. `target_precision` takes
    the place of the percentile.
    """
    ordered = known_in_order(scores)
    threshold, rate = settle(ordered, sentinels, percentile, num_classes)
    mixture = estimate_mixture(ordered, sentinels.losses, num_classes)
    if target_precision is not None:
        # Human confusions hide below the upper half, some right labels lie above the cut: the
        # truth is between the two estimates. Out of reach means to remove nothing.
        likely = mixture._replace(rate=(rate + mixture.rate) / 2)
        threshold = min(likely.cut_for(target_precision), _above(scores))
    elif not named:
        threshold = lower_into_valley(ordered, threshold, float(sentinels.losses.median()))
        rate = _share_above(ordered, threshold)
    if trust is None or trust < 1:
        most = mixture.rate + (trust or 0.0) * max(rate - mixture.rate, 0.0)
        rate = min(rate, most) if target_precision is None else rate
        most = 0.0 if mixture.hopeless or trust is None else most
        threshold = max(threshold, _cut_off(ordered, most) if most else _above(scores))
    low, high = _bound_rate(ordered, sentinels, percentile, mixture.rate, num_classes)
    return threshold, _enclose(rate, low, high, len(ordered))


def _enclose(rate: float, low: float, high: float, count: int) -> tuple[float, float, float]:
    """A rate among so many, and bounds on either side of it, by two standard errors wider."""
    error = 2 * standard_error(rate, count)
    return rate, max(min(low, rate) - error, 0.0), min(max(high, rate) + error, 1.0)


def _bound_rate(
    ordered: Tensor,
    sentinels: Counterfactual,
    percentile: float,
    by_half: float,
    num_classes: int,
) -> tuple[float, float]:
    """What twice and half the percentile would say, or two standard errors of it where few tell.

    Some right labels lie above any cut: no more are sure than look random. `by_half`: those by the
    sentinels' upper half.
    """
    error = 200 * standard_error(percentile / 100, len(sentinels.losses))
    highest = min(percentile + max(error, percentile), 100)
    lowest = max(percentile - max(error, percentile / 2), 0)
    _, low = settle(ordered, sentinels, highest, num_classes)
    _, high = settle(ordered, sentinels, lowest, num_classes)
    return min(low, _surely_random(ordered, sentinels, by_half, num_classes)), high


def _surely_random(
    ordered: Tensor, sentinels: Counterfactual, by_half: float, num_classes: int
) -> float:
    """The noise rate by the sentinels' upper half, less what right labels may have added to it.

    Were all that lies so high random labels, the sentinels' upper quarter would imply as many. As
    much as it implies fewer, right labels lie there too, of a network to which the images are
    hard: it is taken that from the quarter to the top they grow fewer as fast again.
    """
    _, by_quarter = settle(ordered, sentinels, 75.0, num_classes, recall=0.25)
    return by_half - 2 * max(by_half - by_quarter, 0.0)


def standard_error(share: float, count: int) -> float:
    """Of a share that is estimated from so many."""
    return math.sqrt(share * (1 - share) / max(1, count))


def lower_into_valley(ordered: Tensor, threshold: float, height: float) -> float:
    """The bottom of a valley in the density of scores, where there is one below the threshold.

    Where wrong labels differ from right ones, but less than random labels would (they depend on the
    image, or on a class that is taken for another), they make a hill of their own, and a percentile
    of random ones cuts through it. Few sentinels place a percentile roughly, too. A valley is lower
    than four fifths of the hills on both sides, and by more than chance. It is sought down to the
    middle of what is kept, but not below a score of 0, where the label fits better than its rival:
    hard classes make hills there. `height`: the sentinels' median, whose distance from that middle
    says how much to smooth.
    """
    kept = int(torch.searchsorted(ordered, torch.tensor(threshold)))
    if kept in (0, len(ordered)):
        return threshold
    middle = float(ordered[kept // 2])
    if max(middle, 0.0) >= threshold or height <= middle:
        return threshold
    # As far above the sentinels' middle as it is above right labels: strays coarsen the grid.
    top = max(threshold, min(float(ordered[-1]), 2 * height - middle))
    grid = torch.linspace(middle, top, VALLEY_GRID)
    few = ordered[torch.linspace(0, len(ordered) - 1, min(len(ordered), PLOTTED)).long()]
    distances = (grid[:, None] - few) / (SMOOTHING * (height - middle))
    density = distances.square().mul(-0.5).exp().mean(1)
    hills = torch.minimum(density.cummax(0).values, density.flip(0).cummax(0).values.flip(0))
    hills = hills.clamp(min=1e-30)
    # Two standard errors of the examples that make the hill: few leave deep gaps by chance.
    chance = 2 / (hills * len(ordered)).sqrt()
    depth = density / hills + (chance - (1 - SHALLOW)).clamp(min=0)
    slopes = density.diff()
    bottoms = torch.zeros(VALLEY_GRID, dtype=torch.bool)
    bottoms[1:-1] = (slopes[:-1] <= 0) & (slopes[1:] >= 0)
    depth[~bottoms | (grid < 0) | (grid > threshold)] = 1.0
    deepest = int(depth.argmin())
    return float(grid[deepest]) if depth[deepest] < SHALLOW else threshold


def settle(
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
    """The threshold with the best F1 that can be expected."""

    threshold: float
    f1: float


class Mixture(NamedTuple):
    """What thresholds would do, were all wrong labels as random as the sentinels'."""

    cuts: Tensor  # (GRID,) thresholds, ascending
    recall: Tensor  # (GRID,) share of wrong labels at or above each
    flagged: Tensor  # (GRID,) share of all examples
    rate: float
    """The noise rate η."""
    hopeless: bool
    """Right labels look as wrong as the sentinels."""

    def best_cut(self) -> BestCut:
        """F1 = 2 η R / (share of examples above T + η) at its largest."""
        f1 = 2 * self.rate * self.recall / (self.flagged + self.rate).clamp(min=1e-12)
        f1 = f1 * (not self.hopeless)  # "all are wrong" would be a perfect guess
        return BestCut(float(self.cuts[f1.argmax()]), float(f1.max()))

    def cut_for(self, precision: float) -> float:
        """The lowest threshold from which on that share is wrong; infinity where there is none."""
        reached = self.rate * self.recall >= precision * self.flagged
        missed = (~reached).nonzero()
        first = int(missed[-1]) + 1 if len(missed) else 0
        hopeless = self.hopeless or first == len(self.cuts)
        return math.inf if hopeless else float(self.cuts[first])


def estimate_mixture(ordered: Tensor, sentinels: Tensor, num_classes: int) -> Mixture:
    """Examples, in ascending order of score, as a mixture of right labels and sentinel-like ones.

    Recall R(T) is the share of sentinels above T, the noise rate η what the upper half of the
    sentinels implies.
    """
    wrapped = Counterfactual(sentinels, "sentinels")
    upper, rate = settle(ordered, wrapped, 50.0, num_classes, recall=0.5)
    right = _share_right(rate, num_classes)
    cuts = torch.linspace(float(sentinels[0]), upper, GRID)
    recall = 1 - torch.searchsorted(sentinels, cuts) / len(sentinels)
    recall = recall.div(1 - right).clamp(max=1)
    flagged = 1 - torch.searchsorted(ordered, cuts) / len(ordered)
    flagged = flagged.maximum(rate * recall)  # no fewer than are found, lest F1 exceed 1
    return Mixture(cuts, recall, flagged, rate, rate + right >= HOPELESS)


def share_of_vague(ordered: Tensor, sentinels: Tensor, num_classes: int) -> float:
    """Share of examples, in ascending order of score, that look wrong but not wholly random.

    Those above the default percentile of the sentinels, whatever the user's, less the noise rate
    that the sentinels' upper half implies.
    """
    wrapped = Counterfactual(sentinels, "sentinels")
    _, suspicious = settle(ordered, wrapped, PERCENTILES["sentinels"], num_classes)
    return max(suspicious - share_of_random(ordered, sentinels, num_classes), 0.0)


def share_of_random(ordered: Tensor, sentinels: Tensor, num_classes: int) -> float:
    """Share of examples, in ascending order of score, that look wholly random.

    It is what the sentinels' upper half implies.
    """
    return settle(ordered, Counterfactual(sentinels, "sentinels"), 50.0, num_classes, recall=0.5)[1]


def probe(count: int) -> slice | Tensor:
    """Which of so many examples estimates look at: all, or a random million, which tell as well."""
    if count <= PROBED:
        return slice(None)
    return torch.randint(count, (PROBED,), generator=torch.Generator().manual_seed(SALT))


def known(scores: Tensor) -> Tensor:
    """Those that are numbers, or a random million of them."""
    scores = scores[probe(len(scores))]
    return scores[scores.isfinite()]


def known_in_order(scores: Tensor) -> Tensor:
    """`known` on the CPU, in ascending order."""
    return known(scores).cpu().sort().values


def _cut_off(ordered: Tensor, share: float) -> float:
    """The threshold that no more than this share of ascending scores reaches, ties aside."""
    kept = math.ceil((1 - share) * len(ordered))
    return float(ordered[kept]) if kept < len(ordered) else _above(ordered)


def _above(scores: Tensor) -> float:
    """A threshold that none of the scores reaches."""
    highest = scores[scores.isfinite()].max().float()
    return float(highest.nextafter(torch.tensor(math.inf)))


def _share_above(ordered: Tensor, threshold: float) -> float:
    """Of ascending scores, the share at or above the threshold."""
    below = int(torch.searchsorted(ordered, torch.tensor(threshold)))
    return 1 - below / max(1, len(ordered))
