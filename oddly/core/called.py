"""Classes of which many images are called another.

People take one class for another, or a part of one was filed under another. The network learns both
names, so that such images score lower than random labels would, and a percentile of sentinels
misses most. But then all images of the class look like the other one, even its surest. Of a class
that is merely hard, or merely alike, the surest do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from oddly.core.confusion import MOST_CLASSES, probe_known
from oddly.core.sentinels import Scored
from oddly.errors import first_few

FEWEST_CLASSES = 4  # with fewer, random labels too go to one class, or to two
SUREST = 0.25  # of a class's images
LEAST = 0.08  # of a class: found from here on
# Chosen on heads on features of nine image sets: docs/constants.md, "Called another".


def find_called(examples: Scored, num_classes: int) -> tuple[tuple[int, int], ...]:
    """Pairs of label and rival, where many images of the rival bear the label."""
    if not FEWEST_CLASSES <= num_classes <= MOST_CLASSES:
        return ()
    known = probe_known(examples)
    beyond = known.scores > 0
    places = known.labels.long() * num_classes + known.rivals.long()
    seen = torch.bincount(places[beyond], minlength=num_classes**2).view(num_classes, num_classes)
    found = []
    for own, scores, rivals in _by_class(known, num_classes):
        other = int(rivals[: math.ceil(len(rivals) / 2)].bincount().argmax())
        if _share_called(scores, rivals, other, int(seen[other, own])) > LEAST:
            found.append((other, own))
    return tuple(found)


def _by_class(known: Scored, num_classes: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Every class that has any: number, scores from the surest image on, rivals."""
    order = known.scores.argsort()
    order = order[known.labels[order].argsort(stable=True)]
    scores, labels, rivals = (column[order] for column in known)
    sizes = torch.bincount(labels.long(), minlength=num_classes).tolist()
    parts = zip(scores.split(sizes), rivals.long().split(sizes), strict=True)
    yield from ((k, *part) for k, part in enumerate(parts) if sizes[k])


def _share_called(scores: Tensor, rivals: Tensor, other: int, beyond: int) -> float:
    """How many of a class are called `other`, cautiously.

    Two things tell. How likely the other name is to the network for the surest images: any image
    may be called so. And how many of those under that name rather look like the class, less a
    standard error. The lower one counts, and the less so, the more other rivals the class has.
    """
    to_other = rivals == other
    surest = math.ceil(SUREST * len(scores))
    likely = float((scores[:surest].sigmoid() * to_other[:surest]).mean())
    share = (beyond - math.sqrt(beyond)) / len(scores)
    return min(likely, share) * float(to_other.double().mean())


def halve(examples: Scored, pairs: Sequence[tuple[int, int]], num_classes: int) -> Tensor:
    """Of each pair the score, 0 at most, half-way between wrong labels and right ones.

    To the network an image that is called another has both names; it fits the wrong one as badly as
    images of its class under the right one fit well. So the middle of these, with the sign
    reversed, is where the wrong ones lie.
    """
    medians = torch.zeros(num_classes)
    for own, scores, _ in _by_class(probe_known(examples), num_classes):
        medians[own] = scores[(len(scores) - 1) // 2]
    label, rival = torch.tensor(pairs).T
    return ((medians[label] - medians[rival]) / 2).clamp(max=0)


def tell_called(pairs: Sequence[tuple[object, object]]) -> str | None:
    """That images of some classes are called another; None where there are none."""
    if not pairs:
        return None
    named = first_few([f"{rival} called {label}" for label, rival in pairs], 5)
    classes = "1 class has" if len(pairs) == 1 else f"{len(pairs)} classes have"
    return (
        f"labels seem to have gone wrong by a rule: {classes} many images under the label of"
        f" another ({named}); look also at what is kept under these labels"
    )
