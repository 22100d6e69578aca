"""Choose the percentile of the sentinels to cut at, if the user has not."""

from __future__ import annotations

import torch

from oddly.core.counterfactual import Counterfactual
from oddly.core.rule import PERCENTILES
from oddly.core.sentinels.cut import (
    estimate_mixture,
    known_in_order,
    original_percentile,
    probe,
    settle,
)
from oddly.core.sentinels.planting import GOOD_F1, Scored

VAGUE_F1, RANDOM_F1 = 0.82, 0.87  # estimated F1: noise is not random below, and random above
FEW_WRONG, FALL = 17.0, 23.0  # for random noise, the percentile is 17 - 23 · noise rate …
LEAST, MOST = 8.0, 15.0  # … within these bounds
MEANT = 1 / 4  # share of suspicious labels that look entirely random, needed to use the mixture
ONE_PAIR = 1 / 3  # of what a higher cut would spare: more of one label and rival is no chance


def choose_percentile(examples: Scored, sentinels: Counterfactual, num_classes: int) -> float:
    """The percentile for a cut near the best F1.

    Human confusions score lower than random labels, so the usual percentile is low, to find them.
    If wrong labels are as random as the sentinels, a low percentile only costs right labels, the
    more so the fewer are wrong, and a higher one is better. We take noise for random if the mixture
    of right labels and sentinels promises a good F1; on human labels it was 0.80 at most.

    The percentile does not rise
    - beyond the best cut of that mixture: if few right labels score high, nothing is gained;
    - if it would mostly spare one pair of label and rival: a confusion besides the random noise;
    - if hardly any suspicious label looks as random as the sentinels' upper half: the mixture then
      rests on a few extreme scores.
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
