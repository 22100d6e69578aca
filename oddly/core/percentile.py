"""Which percentile of the sentinels suits the noise, where nobody has named one."""

from __future__ import annotations

import torch

from oddly.core.counterfactual import Counterfactual
from oddly.core.cut import (
    estimate_mixture,
    known_in_order,
    original_percentile,
    probe,
    settle,
)
from oddly.core.rule import PERCENTILES
from oddly.core.sentinels import GOOD_F1, Scored

VAGUE_F1, RANDOM_F1 = 0.82, 0.87  # estimated: up to here noise is not random, from there it is
FEW_WRONG, FALL = 17.0, 23.0  # percentile for hardly any random noise, and its fall towards rate 1
LEAST, MOST = 8.0, 15.0  # bounds of that percentile
MEANT = 1 / 4  # of the suspicious look wholly random; with fewer the mixture says nothing
ONE_PAIR = 1 / 3  # of what a higher cut would spare: too many of one label and rival to be chance


def choose_percentile(examples: Scored, sentinels: Counterfactual, num_classes: int) -> float:
    """The percentile for a cut near the best F1.

    People's confusions score lower than random labels: the usual percentile is low for their sake.
    Where wrong labels are as random as the sentinels, it costs right labels for nothing, the more
    the fewer are wrong. Noise is random where the mixture of right labels and sentinels expects
    a good F1: by what people confuse it is 0.80 at most. That mixture's own best cut bounds the
    percentile: where few right labels score high, there is nothing to win. Nor does it rise where
    it would mostly spare one pair of label and rival, a confusion beside the random noise, or where
    hardly any of the suspicious look as random as the upper half of the sentinels: the mixture is
    then made of a few strays.
    """
    usual = PERCENTILES["sentinels"]
    ordered = known_in_order(examples.scores)
    mixture = estimate_mixture(ordered, sentinels.losses, num_classes)
    threshold, rate = settle(ordered, sentinels, usual, num_classes)
    best = mixture.best_cut()
    if best.f1 >= GOOD_F1 or mixture.rate < MEANT * rate:
        return usual  # hardly any overlap, so nothing to win; or hardly any mixture
    for_random = min(max(FEW_WRONG - FALL * rate, LEAST), MOST)
    share = min(max((best.f1 - VAGUE_F1) / (RANDOM_F1 - VAGUE_F1), 0.0), 1.0)
    bound = float(sentinels.percentile_of(torch.tensor([best.threshold])))
    bound = original_percentile(bound, rate, num_classes)
    chosen = round(max(usual, min(usual + share * (for_random - usual), bound)), 1)
    higher, _ = settle(ordered, sentinels, chosen, num_classes)
    return usual if _of_one_pair(examples, threshold, higher, num_classes) else chosen


def _of_one_pair(examples: Scored, low: float, high: float, num_classes: int) -> bool:
    """Whether more than a third of the examples between two thresholds are of one pair."""
    few = probe(len(examples.scores))
    scores, labels, rivals = (column[few] for column in examples)
    between = (scores >= low) & (scores < high)
    pairs = labels[between].long() * num_classes + rivals[between].long()
    if not len(pairs):
        return False
    return int(pairs.unique(return_counts=True)[1].max()) > ONE_PAIR * len(pairs)
