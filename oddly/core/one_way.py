"""Labels that went wrong by a rule: most classes hold images of one other, not the reverse.

So it is where a part of the data numbers its classes otherwise. What the network learns from that
part is what the label says, so that its images score far lower than random labels would, and a
percentile of sentinels misses them. Classes that are merely alike are taken for each other, but not
quite evenly: the smaller rather for the larger, and where a network has not found their boundary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from oddly.core.confusion import MOST_CLASSES, look_up, probe_known, shift_
from oddly.core.cut import SHALLOW, VALLEY_GRID, standard_error
from oddly.core.sentinels import Scored
from oddly.errors import first_few

CERTAIN = 2.0  # standard errors by which a rival must stand out for its class to be counted
TIMES = 1.4  # as often as any other, too: with many examples a boundary a little off is certain
MOSTLY = 0.5  # of the images that have this rival look more like it: fewer do beside a boundary
USUAL = 0.3  # of the classes may have such a rival where nothing is wrong
# Chosen on recorded trainings: docs/constants.md, "Wrong by a rule".


def find_one_way(examples: Scored, num_classes: int) -> tuple[tuple[int, int], ...]:
    """Pairs of label and rival that are confused one way; none where too few classes have one.

    Of the images that rather look like another class, more must look like the rival than like
    any other, and more than the rival has that look like this label. These count by the square of
    how many times the rival's class is larger: in doubt a network says the larger one, and the
    more so, the more alike the two are. And most images that come near the rival must be beyond it.
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
    # Each rival counts once: a network that has learnt little takes everything for a few classes.
    mostly = most > MOSTLY * near.gather(1, first[:, None])[:, 0]
    counted = len(first[(errors > CERTAIN) & (most > TIMES * other) & mostly].unique())
    by_chance = 2 * math.sqrt(USUAL * (1 - USUAL) / max(1, present))
    if counted <= (USUAL + by_chance) * present:
        return ()
    # Where so many have a rival for certain, others that lean to one are likely to have it too.
    return tuple((k, int(first[k])) for k in (errors > 0).nonzero().flatten().tolist())


def find_levels(examples: Scored, pairs: Sequence[tuple[int, int]], num_classes: int) -> Tensor:
    """Of each pair the score, 0 at most, down to which more of its images are wrong than right.

    The network has learnt the rule, so an image that went wrong by it may fit its label better than
    its true class. But that class is its rival, while an image whose label is right has as rival
    what the rule calls its own kind, or what it looks like. How many right ones to expect at a
    score, the label's next frequent rival tells, where there is one. One level serves all pairs
    most of whose images are beyond their rival: others may just be alike, and stay at 0.
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
    # Where the first rival is twice as frequent as the other, as many are wrong as right.
    gains = by_rule.long() - 2 * (rivals == other[labels])
    level = _common_level(known, gains, label[telling], num_classes)
    levels[telling] = _stop_in_valley(known.scores[by_rule], level)
    return levels


def _common_level(scored: Scored, gains: Tensor, labels: Tensor, num_classes: int) -> float:
    """Where `gains` (N,) are greatest, of examples in the order of their labels; 0 if by chance.

    A few pairs of classes that are alike by nature would draw the level of all pairs down, few
    images that of a single pair: of all pairs' and the median pair's the higher counts.
    """
    sizes = torch.bincount(scored.labels.long(), minlength=num_classes).tolist()
    scores, gained = scored.scores.split(sizes), gains.split(sizes)
    own = torch.stack([_best_level(scores[k], gained[k]) for k in labels.tolist()])
    level = max(float(own.median()), float(_best_level(scored.scores, gains)))
    gains = gains[(scored.scores >= level) & (scored.scores <= 0)]  # none where it lies above 0
    return level if gains.sum() > gains.square().sum().sqrt() else 0.0


def _best_level(scores: Tensor, gains: Tensor) -> Tensor:
    """The score from which on all gains together are greatest."""
    order = scores.argsort(descending=True)
    return scores[order[gains[order].cumsum(0).argmax()]]


def _stop_in_valley(scores: Tensor, level: float) -> float:
    """The emptiest place above the level, where images of these pairs grow more numerous below it.

    Classes in a row are alike to their neighbours on both sides, so that right ones have the rule's
    rival as often as any other: they make a hill of their own.
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
    """Raise these pairs' scores in place, so that what was at its level reaches the threshold.

    `shifts` (K, K) is what was added to scores before, by label and rival. Returns how far each
    pair was raised (K, K).
    """
    labels, rivals = torch.tensor(pairs).T
    raised = torch.zeros_like(shifts)
    raised[labels, rivals] = (threshold - levels - shifts[labels, rivals]).clamp(min=0)
    shift_(examples, raised)
    return raised


def share_wrong(
    examples: Scored, raised: Tensor, threshold: float, held: float | None
) -> tuple[float, float]:
    """The share of examples that reach the threshold now, and the most that may be wrong.

    With all others of these pairs, since the network has learnt the rule as well, or with as many
    more as no pair can hold (`held`). None, where each class was looked at by itself: with two
    standard errors and nothing else.
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
    """Of images that went wrong by the rule, those that are in its pairs: whose class has one, and
    whose rival is their true class.

    How many have that for a rival, all images of these classes tell: one whose label is right has
    what the rule calls it. Where little is wrong, right ones have any rival, and only those beyond
    theirs tell: of both shares, too low rather than too high, the larger.
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
    """How often each pair occurs (K, K); `places` are rows times K plus columns."""
    return torch.bincount(places, minlength=num_classes**2).view(num_classes, num_classes)


def tell_one_way(pairs: Sequence[tuple[object, object]]) -> str | None:
    """That labels went wrong by a rule, with some of these pairs; None where there are none."""
    if not pairs:
        return None
    named = first_few([f"{rival} among {label}" for label, rival in pairs], 3)
    return (
        f"labels seem to be systematically wrong: {len(pairs)} classes contain images of one other"
        f" class, but not the other way round ({named}), as if part of the data numbers its classes"
        " differently; find that part, or also check the examples kept in these classes"
    )
