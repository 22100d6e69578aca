"""Find labels that are wrong by a rule: most classes contain images of one other class.

This happens if part of the data numbers its classes differently: class 3 contains images of class
4, but not the other way round. The network learns what the labels say, so these images score far
lower than random labels would, and a percentile of the sentinels misses them. Classes that are just
similar are confused in both directions, although not evenly: more from the smaller to the larger
one, and wherever the network has not found their boundary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from oddly.core.sentinels.confusion import MOST_CLASSES, look_up, probe_known, shift_
from oddly.core.sentinels.cut import SHALLOW, VALLEY_GRID, standard_error
from oddly.core.sentinels.planting import Scored
from oddly.errors import first_few

CERTAIN = 2.0  # standard errors by which a rival must stand out for its class to be counted …
TIMES = 1.4  # … and it must be this much more frequent: with many examples, 2 errors are little
MOSTLY = 0.5  # share of the images with this rival that look more like it; fewer at a boundary
USUAL = 0.3  # share of classes that may have such a rival even if no label is wrong
# Chosen on recorded trainings: docs/constants.md, "Wrong by a rule".


def find_one_way(examples: Scored, num_classes: int) -> tuple[tuple[int, int], ...]:
    """Pairs of label and rival that are confused in one direction; none if few classes have one.

    Consider the images of a label that look more like another class. More of them must look like
    the rival than like any third class, and more than there are images of the rival that look like
    the label. The latter count times the square of the ratio of class sizes, because in doubt a
    network predicts the larger class. And of all images of the label with that rival, most must
    look more like the rival.
    """
    if num_classes > MOST_CLASSES:
        return ()
    known = probe_known(examples)
    labels, rivals = (column.long() for column in known[1:])
    sizes = torch.bincount(labels, minlength=num_classes).double()
    present = int(sizes.count_nonzero())
    places, beyond = labels * num_classes + rivals, known.scores > 0
    near, seen = (_count(some, num_classes).double() for some in (places, places[beyond]))
    (most, second), first = seen.topk(2, 1).values.unbind(1), seen.argmax(1)
    larger = (sizes[first] / sizes.clamp(min=1)).clamp(min=1)
    other = second.maximum(larger**2 * seen[first, torch.arange(num_classes)])
    errors = (most - other) / (most + other).clamp(min=1).sqrt()
    # Each rival counts once: a network that has learnt little predicts only a few classes.
    mostly = most > MOSTLY * near.gather(1, first[:, None])[:, 0]
    counted = len(first[(errors > CERTAIN) & (most > TIMES * other) & mostly].unique())
    by_chance = 2 * math.sqrt(USUAL * (1 - USUAL) / max(1, present))
    if counted <= (USUAL + by_chance) * present:
        return ()
    # With a certain rival in so many classes, the uncertain rivals of others are likely real too.
    return tuple((k, int(first[k])) for k in (errors > 0).nonzero().flatten().tolist())


def find_levels(examples: Scored, pairs: Sequence[tuple[int, int]], num_classes: int) -> Tensor:
    """For each pair, the score, at most 0, above which more of its images are wrong than right.

    The network has learnt the rule, so a mislabelled image may fit its label better than its true
    class. But its true class is its rival. An image with a right label has another rival: the label
    that the rule gives to its class, or a similar class. The number of images with the label's
    next most frequent rival estimates how many right labels to expect at a score. All pairs most of
    whose images look more like the rival share one level. The other pairs may just be similar
    classes and keep the level 0.
    """
    known = probe_known(examples)
    known = Scored(*(column[known.labels.argsort(stable=True)] for column in known))
    labels, rivals = (column.long() for column in known[1:])
    places = labels * num_classes + rivals
    near, seen = (_count(some, num_classes) for some in (places, places[known.scores > 0]))
    label, rival = torch.tensor(pairs).T
    others = near.index_put((label, rival), torch.tensor(-1))
    others[rival, label] = -1
    frequent, other = others.max(1)
    telling = (seen[label, rival] > MOSTLY * near[label, rival]) & (frequent[label] > 0)
    levels = torch.zeros(len(pairs))
    if not telling.any():
        return levels
    first = torch.full((num_classes,), -1).index_put((label[telling],), rival[telling])
    other = other.where(first >= 0, -1)
    by_rule = rivals == first[labels]
    # If the first rival is twice as frequent as the other, half of its images are wrong.
    gains = by_rule.long() - 2 * (rivals == other[labels])
    level = _common_level(known, gains, label[telling], num_classes)
    levels[telling] = _stop_in_valley(known.scores[by_rule], level)
    return levels


def _common_level(scored: Scored, gains: Tensor, labels: Tensor, num_classes: int) -> float:
    """The level with the greatest sum of `gains` (N,) above it; 0 if that is no more than chance.

    Examples are sorted by label. A few pairs of similar classes would lower the level of all pairs
    together, a small class its own level: the higher counts, of the level of all pairs together
    and the median of the pairs' own levels.
    """
    sizes = torch.bincount(scored.labels.long(), minlength=num_classes).tolist()
    scores, gained = scored.scores.split(sizes), gains.split(sizes)
    own = torch.stack([_best_level(scores[k], gained[k]) for k in labels.tolist()])
    level = max(float(own.median()), float(_best_level(scored.scores, gains)))
    gains = gains[(scored.scores >= level) & (scored.scores <= 0)]  # none where it lies above 0
    return level if gains.sum() > gains.square().sum().sqrt() else 0.0


def _best_level(scores: Tensor, gains: Tensor) -> Tensor:
    """The score above which the gains have the greatest sum."""
    order = scores.argsort(descending=True)
    return scores[order[gains[order].cumsum(0).argmax()]]


def _stop_in_valley(scores: Tensor, level: float) -> float:
    """The level, or the lowest density above it, if the density rises again below that point.

    If classes resemble their neighbours on both sides (as ordered ones do), right labels have the
    rule's rival as often as any other. They then form a hill of their own, which is not wrong.
    """
    if level >= 0:
        return 0.0
    ordered = scores.float().sort().values
    width = max(float(scores[scores > 0].median()) / 4, -level / VALLEY_GRID)
    grid = torch.linspace(0, level, VALLEY_GRID)
    above, below = (torch.searchsorted(ordered, grid + step) for step in (width, -width))
    density = (above - below).double()
    emptiest = density.cummin(0).values
    rises = density > emptiest / SHALLOW + CERTAIN * emptiest.sqrt()
    if not rises.any():
        return level
    return float(grid[density[: int(rises.int().argmax())].argmin()])


def condemn_(
    examples: Scored,
    pairs: Sequence[tuple[int, int]],
    levels: Tensor,
    shifts: Tensor,
    threshold: float,
) -> Tensor:
    """Raise the scores of these pairs in place, so that their `levels` reach the threshold.

    `shifts` (K, K) is what has been added to the scores before, by label and rival. Returns what
    was added now (K, K).
    """
    labels, rivals = torch.tensor(pairs).T
    raised = torch.zeros_like(shifts)
    raised[labels, rivals] = (threshold - levels - shifts[labels, rivals]).clamp(min=0)
    shift_(examples, raised)
    return raised


def share_wrong(
    examples: Scored, raised: Tensor, threshold: float, held: float | None
) -> tuple[float, float]:
    """The share of examples that now reach the threshold, and an upper bound for wrong labels.

    The upper bound counts all images of these pairs, because the network has learnt the rule as
    well. `held` is the share of mislabelled images that are in pairs at all (`share_held`); the
    bound also counts the others. If `held` is None (single classes, no rule), it is two standard
    errors above the share.
    """
    known = probe_known(examples)
    suspected = known.scores >= threshold
    of_pairs = look_up(raised, known) > 0
    shares = (suspected, suspected | of_pairs, suspected & of_pairs)
    rate, most, ruled = (float(each.double().mean()) for each in shares)
    error = 2 * standard_error(rate, len(known.scores))
    if held is None:
        return rate, min(rate + error, 1.0)
    return rate, max(most, min(rate - ruled + ruled / max(held, ruled) + error, 1.0))


def share_held(examples: Scored, pairs: Sequence[tuple[int, int]], shifts: Tensor) -> float:
    """Of the images mislabelled by the rule, the share that is in one of its pairs.

    That is, their label is in a pair and their rival is their true class. There are two estimates,
    both rather too low, so the larger counts: the share of all images of these classes whose rival
    is the true class or the label that the rule gives (an image with a right label has the latter),
    and the share with that rival among images that look more like their rival. The second is for
    data with few wrong labels, where right ones have any rival.
    """
    known = probe_known(examples)
    labels, rivals = (column.long() for column in known[1:])
    label, rival = torch.tensor(pairs).T
    none = torch.full((len(shifts),), -1)
    true, called = none.index_put((label,), rival), none.index_put((rival,), label)
    by_rule = rivals == true[labels]
    either = by_rule | (rivals == called[labels])
    beyond = known.scores > look_up(shifts, known)
    ruled = true[labels] >= 0
    told = (either[ruled & (called[labels] >= 0)], by_rule[ruled & beyond])
    shares = (float(each.double().mean()) for each in told if len(each))
    return float(ruled.double().mean()) * max(shares, default=1.0)


def _count(places: Tensor, num_classes: int) -> Tensor:
    """How often each pair occurs (K, K); `places` are row · K + column."""
    return torch.bincount(places, minlength=num_classes**2).view(num_classes, num_classes)


def tell_one_way(pairs: Sequence[tuple[object, object]]) -> str | None:
    """A warning that names some of the pairs; None if there are none."""
    if not pairs:
        return None
    named = first_few([f"{rival} among {label}" for label, rival in pairs], 3)
    return (
        f"labels seem to be systematically wrong: {len(pairs)} classes contain images of one other"
        f" class, but not the other way round ({named}), as if part of the data numbers its classes"
        " differently; find that part, or also check the examples kept in these classes"
    )
