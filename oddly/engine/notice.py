"""What a run reports about its verdict, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from oddly.core import Verdict
from oddly.errors import first_few
from oddly.methods import Judgement
from oddly.methods.judgement import SUSPICIOUS_SHARE, TOO_MANY

NAMED = 5  # classes


def tell_news(
    verdict: Verdict | Judgement | None,
    before: Verdict | Judgement | None,
    epoch: int,
    class_names: Sequence[str],
    pictures: Tensor | None = None,
) -> Iterator[str]:
    """Lines about a new verdict, or about a later round that changed it."""
    if verdict is None or verdict is before:
        return
    if before is None:
        yield from tell_verdict(verdict, class_names, pictures)
    elif (
        isinstance(verdict, Verdict)
        and isinstance(before, Verdict)
        and verdict.readmitted != before.readmitted
    ):
        yield f"after epoch {epoch}: {verdict.tell_readmitted()}"


def tell_verdict(
    verdict: Verdict | Judgement, class_names: Sequence[str], pictures: Tensor | None = None
) -> Iterator[str]:
    """What the verdict removes, and what the user should look at; `pictures` as in the data."""
    ours = verdict if isinstance(verdict, Verdict) else None
    yield from [ours.tell_removed(), *ours.cautions(class_names)] if ours else [str(verdict)]
    doubt = verdict.tell_doubt()
    if doubt and not ours:  # of ours, the cautions have said it
        yield doubt
    too_many = verdict.removed_fraction > SUSPICIOUS_SHARE
    if too_many and not doubt:
        yield f"{TOO_MANY}; train longer, or raise the percentile"
    if verdict.spared_classes:
        spared = first_few([class_names[k] for k in verdict.spared_classes], NAMED)
        yield f"classes kept whole because they are small or would be emptied: {spared}"
    if ours and not too_many:
        found = hardest_hit(ours, len(class_names), pictures)
        if found:
            hit = first_few([f"{class_names[k]} ({n} of {of})" for k, n, of in found], NAMED)
            yield (
                f"more than half are removed in {hit}: verdicts on rare and hard classes are"
                " unreliable, so look at these first"
            )


def hardest_hit(
    verdict: Verdict, num_classes: int, pictures: Tensor | None = None
) -> list[tuple[int, int, int]]:
    """Classes that lose more than half, the largest share first: class, how many, of how many.

    Copies of pictures under different labels say nothing about their class.
    """
    known = verdict.labels >= 0
    if pictures is not None:
        known &= pictures < 0
    counts = torch.bincount(verdict.labels[known].long(), minlength=num_classes)
    removed = torch.bincount(verdict.labels[known & ~verdict.keep].long(), minlength=num_classes)
    shares = removed / counts.clamp(min=1)
    worst = shares.argsort(descending=True, stable=True)
    return [
        (int(k), int(removed[k]), int(counts[k])) for k in worst if shares[k] > SUSPICIOUS_SHARE
    ]
