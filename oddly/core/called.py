"""Classes of which many images are called another.

People take one class for another, or a part of one was filed under another. The network learns both
names, so that such images score lower than random labels would, and a percentile of sentinels
misses most. But then all images of the class look somewhat like the other one, even its surest. Of
a class that is merely hard, or merely alike, the surest do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from oddly.core.confusion import MOST_CLASSES, probe_known
from oddly.core.sentinels import Scored
from oddly.errors import first_few

FEWEST = 10  # images of a class: of fewer follows nothing
SUREST = 0.25  # of a class's images
LEAST = 0.08  # of a class, beyond what random labels make: found from here on …
BLURRED = 0.12  # … or from here on, where the other class is learnt no better than this one
# Chosen on heads on features of nine image sets: docs/constants.md, "Called another".


class Members(NamedTuple):
    """The images of one label, from the one that fits it best on."""

    scores: Tensor  # (n,) ascending
    rivals: Tensor  # (n,)

    @property
    def median(self) -> float:
        return float(self.scores[(len(self.scores) - 1) // 2]) if len(self.scores) else 0.0


def find_called(examples: Scored, random: float, num_classes: int) -> tuple[tuple[int, int], ...]:
    """Pairs of label and rival, where many images of the rival bear the label.

    `random` is the share of labels that look wholly random: they go to every other class.
    """
    if num_classes > MOST_CLASSES:
        return ()
    found, classes = [], _by_class(examples, num_classes)
    for own, members in enumerate(classes):
        if len(members.scores) < FEWEST:
            continue
        surer = members.rivals[: math.ceil(len(members.rivals) / 2)]
        other = int(surer.bincount().argmax())
        bearers = classes[other]
        least = LEAST if members.median > bearers.median else BLURRED
        alike = bearers.scores[bearers.rivals == own]
        share = _share_called(members, other, int((alike > 0).count_nonzero()))
        emptied = bool((alike >= _level(bearers, members)).sum() == len(bearers.scores))
        if share > least + random / (num_classes - 1) and not emptied:
            found.append((other, own))
    return tuple(found)


def _by_class(examples: Scored, num_classes: int) -> list[Members]:
    known = probe_known(examples)
    order = known.scores.argsort()
    order = order[known.labels[order].argsort(stable=True)]
    scores, labels, rivals = (column[order] for column in known)
    sizes = torch.bincount(labels.long(), minlength=num_classes).tolist()
    parts = zip(scores.split(sizes), rivals.long().split(sizes), strict=True)
    return [Members(*part) for part in parts]


def _share_called(members: Members, other: int, alike: int) -> float:
    """How many of a class are called `other`, cautiously.

    Two things tell. How likely the other name is to the network for the surest images: any image
    may be called so. And how many of those under that name rather look like the class (`alike`),
    less a standard error. The lower one counts, and the less so, the more other rivals the class
    has.
    """
    to_other = members.rivals == other
    surest = math.ceil(SUREST * len(members.scores))
    likely = float((members.scores[:surest].sigmoid() * to_other[:surest]).mean())
    share = (alike - math.sqrt(alike)) / len(members.scores)
    return min(likely, share) * float(to_other.double().mean())


def halve(examples: Scored, pairs: Sequence[tuple[int, int]], num_classes: int) -> Tensor:
    """Of each pair the score half-way between wrong labels and right ones (P,), 0 at most."""
    classes = _by_class(examples, num_classes)
    return torch.tensor([_level(classes[label], classes[rival]) for label, rival in pairs])


def _level(bearers: Members, owners: Members) -> float:
    """Half-way between those who bear a name wrongly and those who bear it rightly.

    To the network an image that is called another has both names; it fits the wrong one as badly as
    images of its class under the right one fit well. So their median, with the sign reversed, is
    where the wrong ones lie.
    """
    return min((bearers.median - owners.median) / 2, 0.0)


def tell_called(pairs: Sequence[tuple[object, object]]) -> str | None:
    """That images of some classes are called another; None where there are none."""
    if not pairs:
        return None
    named = first_few([f"{rival} labelled {label}" for label, rival in pairs], 5)
    classes = "1 class" if len(pairs) == 1 else f"{len(pairs)} classes"  # each rival comes once
    return (
        f"labels seem to be systematically wrong: many images of {classes} have the label of"
        f" another class ({named}); also check the examples kept under these labels"
    )
