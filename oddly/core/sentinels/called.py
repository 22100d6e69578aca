"""Find classes of which many images carry the label of one other class.

This happens when people mistake one class for another, or when part of a class was filed under
another. The network then learns both labels for these images, so they score lower than random
labels would, and a percentile of the sentinels misses most of them. The sign to look for: all
images of the class look a little like the other class, even those that fit their label best. In a
class that is just hard, or just similar, the best-fitting images do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from oddly.core.sentinels.confusion import MOST_CLASSES, probe_known
from oddly.core.sentinels.planting import Scored
from oddly.errors import first_few

FEWEST = 10  # smaller classes are not examined
SUREST = 0.25  # share of a class's images that count as fitting their label best
LEAST = 0.08  # share of a class, beyond random errors, from which a pair is reported …
BLURRED = 0.12  # … if the other class is learnt better than this one; if not, from this share
# Chosen on heads trained on features of nine image sets: docs/constants.md, "Called another".


class Members(NamedTuple):
    """The images with one given label, the best-fitting first."""

    scores: Tensor  # (n,) ascending
    rivals: Tensor  # (n,)

    @property
    def median(self) -> float:
        return float(self.scores[(len(self.scores) - 1) // 2]) if len(self.scores) else 0.0


def find_called(examples: Scored, random: float, num_classes: int) -> tuple[tuple[int, int], ...]:
    """Pairs of label and rival such that many images of the rival class carry the label.

    `random` is the share of labels that look entirely random. Those are spread over all other
    classes and are subtracted.
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
    """A cautious estimate of the share of a class that is labelled `other`.

    There are two estimates: the probability that the network gives `other` on the best-fitting
    images of the class, and the number of images labelled `other` that look more like this class
    (`alike`), less a standard error. The lower one counts. It is scaled by how many images have
    `other` as their rival, because a class with many rivals is just hard.
    """
    to_other = members.rivals == other
    surest = math.ceil(SUREST * len(members.scores))
    likely = float((members.scores[:surest].sigmoid() * to_other[:surest]).mean())
    share = (alike - math.sqrt(alike)) / len(members.scores)
    return min(likely, share) * float(to_other.double().mean())


def halve(examples: Scored, pairs: Sequence[tuple[int, int]], num_classes: int) -> Tensor:
    """For each pair, the score half-way between wrong and right labels (P,), at most 0."""
    classes = _by_class(examples, num_classes)
    return torch.tensor([_level(classes[label], classes[rival]) for label, rival in pairs])


def _level(bearers: Members, owners: Members) -> float:
    """The score half-way between images that carry a label wrongly and those that do so rightly.

    `bearers` have the label, `owners` are the images of the rival class under their right label.
    The network knows both labels of a mislabelled image. It fits the wrong one about as badly as
    the owners fit the right one well, so the owners' median with the sign reversed is where the
    wrong labels lie.
    """
    return min((bearers.median - owners.median) / 2, 0.0)


def tell_called(pairs: Sequence[tuple[object, object]]) -> str | None:
    """A warning that names the pairs; None if there are none."""
    if not pairs:
        return None
    named = first_few([f"{rival} labelled {label}" for label, rival in pairs], 5)
    classes = "1 class" if len(pairs) == 1 else f"{len(pairs)} classes"  # each rival comes once
    return (
        f"labels seem to be systematically wrong: many images of {classes} have the label of"
        f" another class ({named}); also check the examples kept under these labels"
    )
