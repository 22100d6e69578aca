"""Where to cut: a threshold on scores, from the scores of sentinels."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from oddly.core.counterfactual import Counterfactual
from oddly.core.rule import PERCENTILES

SHALLOW = 0.8  # a valley is lower than this share of the lower hill beside it
SMOOTHING = 0.06  # kernel width, as a share of the distance from right labels to sentinels
PLOTTED = 8_192  # examples from which the density is estimated
VALLEY_GRID = 256  # points at which the density is evaluated
GRID = 512  # thresholds tried
PROBED = 1_000_000  # examples used for estimates
HOPELESS = 0.9  # only a network that has learnt nothing suggests such a noise rate
ROUNDS = 16  # of bisection: the noise rate to 0.002 %
SALT = 0xC07


def correct_percentile(percentile: float, noise_rate: float, num_classes: int) -> float:
    """The percentile of all sentinels that is the p-th percentile of those with wrong labels.

    A sentinel planted on a mislabelled example gets the true label with probability 1 / (K - 1).
    Those, η / (K - 1) of all sentinels, have low scores and say nothing about wrong labels.
    """
    right = _share_right(noise_rate, num_classes)
    return 100 * (right + percentile / 100 * (1 - right))


def original_percentile(corrected: float, noise_rate: float, num_classes: int) -> float:
    """The inverse of `correct_percentile`."""
    right = _share_right(noise_rate, num_classes)
    return 100 * (corrected / 100 - right) / (1 - right)


def _share_right(noise_rate: float, num_classes: int) -> float:
    """The share of sentinels that got the true label of a mislabelled example."""
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
    """The threshold, and the estimated share of wrong labels: rate, lower and upper bound.

    The rate is the share of examples above this cut. It counts labels that look random; human
    confusions often score lower.

    The p-th percentile of the sentinels is only the start:
    - If right and wrong labels hardly overlap, it would miss wrong labels. The cut then moves down
      into the valley between them, unless the user `named` the percentile.
    - If the network has hardly learnt (`trust` 0), it would remove many right labels. Then no more
      are removed than the upper half of the sentinels implies are wrong; none if that is nearly
      everything, or if the network has learnt nothing (`trust` None). A `trust` between 0 and 1
      moves the cut part of the way.
    - `target_precision` replaces the percentile.
    """
    ordered = known_in_order(scores)
    threshold, rate = settle(ordered, sentinels, percentile, num_classes)
    mixture = estimate_mixture(ordered, sentinels.losses, num_classes)
    if target_precision is not None:
        # The upper half misses human confusions, the share above the cut includes right labels:
        # the true rate lies between the two. If the target is out of reach, remove nothing.
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
    """The rate, and bounds around it, widened by two standard errors."""
    error = 2 * standard_error(rate, count)
    return rate, max(min(low, rate) - error, 0.0), min(max(high, rate) + error, 1.0)


def _bound_rate(
    ordered: Tensor,
    sentinels: Counterfactual,
    percentile: float,
    by_half: float,
    num_classes: int,
) -> tuple[float, float]:
    """Lower and upper bound of the noise rate, from cuts at twice and at half the percentile.

    With few sentinels, from two standard errors of the percentile. Some right labels lie above any
    cut, so the lower bound is at most the share that surely looks random. `by_half` is the noise
    rate by the sentinels' upper half.
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
    """The noise rate by the sentinels' upper half, less the right labels that may be among them.

    If only random labels scored that high, the sentinels' upper quarter would imply the same rate.
    If it implies a lower one, right labels of hard images score that high as well. We assume that
    they fall off as fast again from the quarter to the top, hence twice the difference.
    """
    _, by_quarter = settle(ordered, sentinels, 75.0, num_classes, recall=0.25)
    return by_half - 2 * max(by_half - by_quarter, 0.0)


def standard_error(share: float, count: int) -> float:
    """The standard error of a share that is estimated from `count` observations."""
    return math.sqrt(share * (1 - share) / max(1, count))


def lower_into_valley(ordered: Tensor, threshold: float, height: float) -> float:
    """The bottom of a valley in the density of scores below the threshold; else the threshold.

    Wrong labels that depend on the image, or on a class that is mistaken for another, differ less
    from right ones than random labels do. They form a hill of their own in the density, and a
    percentile of random labels cuts through that hill. Also, few sentinels determine a percentile
    only roughly. A valley must be lower than four fifths of the hills on both sides, and by more
    than chance. We look for it down to the median of the kept examples, but not below a score of 0,
    where the label fits better than its rival: hard classes form hills there. `height` is the
    sentinels' median; its distance from the median of the kept sets how much to smooth.
    """
    kept = int(torch.searchsorted(ordered, torch.tensor(threshold)))
    if kept in (0, len(ordered)):
        return threshold
    middle = float(ordered[kept // 2])
    if max(middle, 0.0) >= threshold or height <= middle:
        return threshold
    # The grid ends as far above the sentinels' median as that is above the kept examples' median:
    # a few extreme scores must not coarsen it.
    top = max(threshold, min(float(ordered[-1]), 2 * height - middle))
    grid = torch.linspace(middle, top, VALLEY_GRID)
    few = ordered[torch.linspace(0, len(ordered) - 1, min(len(ordered), PLOTTED)).long()]
    distances = (grid[:, None] - few) / (SMOOTHING * (height - middle))
    density = distances.square().mul(-0.5).exp().mean(1)
    hills = torch.minimum(density.cummax(0).values, density.flip(0).cummax(0).values.flip(0))
    hills = hills.clamp(min=1e-30)
    # Two standard errors of the count in the hill: few examples leave deep gaps by chance.
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
    """The threshold and the noise rate, which is the share of examples above it over `recall`.

    Each depends on the other: assuming more noise raises the threshold, and fewer examples lie
    above it. Bisection finds the rate at which both agree. (Plain iteration would oscillate with
    few classes.)
    """
    low, high, threshold, rate = 0.0, 1.0, math.nan, 0.0
    for _ in range(ROUNDS):
        assumed = (low + high) / 2
        threshold = sentinels.threshold(correct_percentile(percentile, assumed, num_classes))
        rate = min(_share_above(ordered, threshold) / recall, 1.0)
        low, high = (assumed, high) if rate > assumed else (low, assumed)
    return threshold, rate


class BestCut(NamedTuple):
    """The threshold with the best expected F1."""

    threshold: float
    f1: float


class Mixture(NamedTuple):
    """What each threshold would find if all wrong labels were as random as the sentinels'."""

    cuts: Tensor  # (GRID,) thresholds, ascending
    recall: Tensor  # (GRID,) share of wrong labels at or above each
    flagged: Tensor  # (GRID,) share of all examples
    rate: float
    """The noise rate η."""
    hopeless: bool
    """Whether right labels look as wrong as the sentinels."""

    def best_cut(self) -> BestCut:
        """F1 = 2 η R / (share of examples above T + η) at its largest."""
        f1 = 2 * self.rate * self.recall / (self.flagged + self.rate).clamp(min=1e-12)
        f1 = f1 * (not self.hopeless)  # "all are wrong" would be a perfect guess
        return BestCut(float(self.cuts[f1.argmax()]), float(f1.max()))

    def cut_for(self, precision: float) -> float:
        """The lowest threshold above which that share is wrong; infinity if there is none."""
        reached = self.rate * self.recall >= precision * self.flagged
        missed = (~reached).nonzero()
        first = int(missed[-1]) + 1 if len(missed) else 0
        hopeless = self.hopeless or first == len(self.cuts)
        return math.inf if hopeless else float(self.cuts[first])


def estimate_mixture(ordered: Tensor, sentinels: Tensor, num_classes: int) -> Mixture:
    """Model scores, in ascending order, as a mixture of right labels and random ones.

    Recall R(T) is the share of sentinels above T; the noise rate η is what the upper half of the
    sentinels implies.
    """
    wrapped = Counterfactual(sentinels, "sentinels")
    upper, rate = settle(ordered, wrapped, 50.0, num_classes, recall=0.5)
    right = _share_right(rate, num_classes)
    cuts = torch.linspace(float(sentinels[0]), upper, GRID)
    recall = 1 - torch.searchsorted(sentinels, cuts) / len(sentinels)
    recall = recall.div(1 - right).clamp(max=1)
    flagged = 1 - torch.searchsorted(ordered, cuts) / len(ordered)
    flagged = flagged.maximum(rate * recall)  # at least the hits, or F1 could exceed 1
    return Mixture(cuts, recall, flagged, rate, rate + right >= HOPELESS)


def share_of_vague(ordered: Tensor, sentinels: Tensor, num_classes: int) -> float:
    """The share of examples that look wrong, but not entirely random; scores ascend.

    It is the share above the default percentile of the sentinels (not the user's), less the noise
    rate that their upper half implies.
    """
    wrapped = Counterfactual(sentinels, "sentinels")
    _, suspicious = settle(ordered, wrapped, PERCENTILES["sentinels"], num_classes)
    return max(suspicious - share_of_random(ordered, sentinels, num_classes), 0.0)


def share_of_random(ordered: Tensor, sentinels: Tensor, num_classes: int) -> float:
    """The share of examples that look entirely random; scores ascend.

    It is what the sentinels' upper half implies.
    """
    return settle(ordered, Counterfactual(sentinels, "sentinels"), 50.0, num_classes, recall=0.5)[1]


def probe(count: int) -> slice | Tensor:
    """Which of `count` examples to use for estimates: all, or a random million of them."""
    if count <= PROBED:
        return slice(None)
    return torch.randint(count, (PROBED,), generator=torch.Generator().manual_seed(SALT))


def known(scores: Tensor) -> Tensor:
    """The finite scores (of very many, those in a random million)."""
    scores = scores[probe(len(scores))]
    return scores[scores.isfinite()]


def known_in_order(scores: Tensor) -> Tensor:
    """`known` on the CPU, in ascending order."""
    return known(scores).cpu().sort().values


def _cut_off(ordered: Tensor, share: float) -> float:
    """The threshold that at most this share of the ascending scores reaches, apart from ties."""
    kept = math.ceil((1 - share) * len(ordered))
    return float(ordered[kept]) if kept < len(ordered) else _above(ordered)


def _above(scores: Tensor) -> float:
    """A threshold that none of the scores reaches."""
    highest = scores[scores.isfinite()].max().float()
    return float(highest.nextafter(torch.tensor(math.inf)))


def _share_above(ordered: Tensor, threshold: float) -> float:
    """The share of ascending scores at or above the threshold."""
    below = int(torch.searchsorted(ordered, torch.tensor(threshold)))
    return 1 - below / max(1, len(ordered))
