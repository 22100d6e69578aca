"""Make a verdict from what was observed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from oddly.core.counterfactual import Counterfactual
from oddly.core.rule import PERCENTILES
from oddly.core.sentinels.called import find_called, halve
from oddly.core.sentinels.confusion import find_shifts, look_up, shift_, size_shifts
from oddly.core.sentinels.cut import cut_by_sentinels, known_in_order, share_of_random
from oddly.core.sentinels.learnt import NOTHING, SURE, contrast, contrast_needed, trust
from oddly.core.sentinels.occurring import Occurring
from oddly.core.sentinels.one_way import (
    condemn_,
    find_levels,
    find_one_way,
    share_held,
    share_wrong,
)
from oddly.core.sentinels.percentile import choose_percentile
from oddly.core.sentinels.planting import Scored, check_observed
from oddly.core.verdict import FEWEST_EXAMPLES, Verdict
from oddly.errors import InputError

EMPTY = torch.empty(0, dtype=torch.bool)
Pairs = tuple[tuple[int, int], ...]
CHUNK = 2**22  # examples counted at a time, so that nothing but the masks grows with N


def judge(
    losses: Tensor,
    labels: Tensor,
    counterfactual: Counterfactual,
    percentile: float,
    epoch: int,
    num_classes: int,
    strict: bool = False,
) -> Verdict:
    """Keep the examples whose loss lies below the p-th percentile of the counterfactual.

    Examples never seen are kept: nothing is known against them. Classes too small to judge, or
    which would be emptied, are kept whole and named; `strict` raises instead.
    """
    if not len(counterfactual.losses):
        raise InputError("no example was observed, or the model's outputs are NaN")
    losses, labels = losses.cpu(), labels.cpu()
    verdict = Verdict(
        keep=EMPTY,
        scores=losses,
        losses=losses,
        labels=labels,
        threshold=counterfactual.threshold(percentile),
        percentile=percentile,
        epoch=epoch,
        counterfactual=counterfactual,
    )
    return _decide(verdict, num_classes, strict)


def judge_by_sentinels(
    examples: Scored,
    losses: Tensor,
    sentinels: Scored,
    percentile: float | None,
    epoch: int,
    num_classes: int,
    strict: bool = False,
    target_precision: float | None = None,
) -> Verdict:
    """The same with margins instead of losses, against those of sentinels, adjusted per pair.

    If `percentile` is None, it is chosen from the noise. With `target_precision`, the cut is where
    that share of the removed is expected to be wrong; the verdict's percentile then follows from
    the cut.
    """
    # A copy, because the scores are shifted below: if this raises, it may be called again.
    copied = examples.scores.to("cpu", copy=True)
    examples = Scored(copied, *(column.cpu() for column in examples[1:]))
    occurring = Occurring(examples.labels, num_classes)
    sentinels = occurring.renumber_planted(sentinels)
    ordered, planted = known_in_order(examples.scores), known_in_order(sentinels.scores)
    check_observed(ordered, sentinels.scores)
    learnt, needed = contrast(planted, ordered), contrast_needed(planted, ordered, len(occurring))
    renumbered = occurring.renumber(examples)
    aims = percentile, target_precision
    cut = _cut_(renumbered, sentinels, *aims, learnt, needed, len(occurring))
    cut = cut._replace(
        one_way=occurring.original(cut.one_way), called=occurring.original(cut.called)
    )
    verdict = Verdict(
        keep=EMPTY,
        scores=examples.scores,
        losses=losses.cpu(),
        labels=examples.labels,
        rivals=examples.rivals,
        epoch=epoch,
        contrast=learnt,
        contrast_needed=needed,
        target_precision=target_precision,
        **cut._asdict(),
    )
    return _decide(verdict, num_classes, strict)


class Cut(NamedTuple):
    """A threshold and what belongs to it; the fields have the same names as those of a verdict."""

    threshold: float
    percentile: float
    counterfactual: Counterfactual
    noise_rate: tuple[float, float, float]
    one_way: Pairs
    called: Pairs


def _cut_(
    examples: Scored,
    sentinels: Scored,
    percentile: float | None,
    target_precision: float | None,
    learnt: float,
    needed: float,
    num_classes: int,
) -> Cut:
    """Find the cut. As the trailing underscore says, this shifts the examples' scores in place."""
    believed, named = trust(learnt, needed), percentile is not None
    ours = not named and target_precision is None  # else the user chose the cut: change nothing
    one_way, called = _find_rules(examples, sentinels, learnt, num_classes) if ours else ((), ())
    ruled, levels = one_way or called, None
    if ruled:  # from the scores as they are, before they are shifted
        levels = (find_levels if one_way else halve)(examples, ruled, num_classes)
    usual = PERCENTILES["sentinels"]  # also if the user named another: that one is for the cut only
    shifts = find_shifts(examples, sentinels, usual, num_classes)
    shifted = sentinels.scores + look_up(shifts, sentinels)
    shifts = shifts + size_shifts(examples.labels, num_classes)
    shift_(examples, shifts)
    random = Counterfactual.from_losses(shifted, "sentinels")
    if percentile is None:
        percentile = choose_percentile(examples, random, num_classes) if ours else usual
    threshold, rates = cut_by_sentinels(
        examples.scores, random, percentile, num_classes, target_precision, believed, named
    )
    if named:  # this moves the cut, not how many labels are wrong
        chosen = choose_percentile(examples, random, num_classes)
        _, rates = cut_by_sentinels(examples.scores, random, chosen, num_classes, None, believed)
    if target_precision is not None:
        percentile = float(random.percentile_of(torch.tensor([threshold])))
    if levels is not None:
        held = share_held(examples, one_way, shifts) if one_way else None
        raised = condemn_(examples, ruled, levels, shifts, threshold)
        rate, most = share_wrong(examples, raised, threshold, held)
        rates = rate, min(rate, rates[1]), max(rates[2], most)
    return Cut(threshold, percentile, random, rates, one_way, called)


def _find_rules(
    examples: Scored, sentinels: Scored, learnt: float, num_classes: int
) -> tuple[Pairs, Pairs]:
    """Pairs of systematically confused classes: by one rule for most classes, or in single ones."""
    if learnt < NOTHING:
        return (), ()
    one_way = find_one_way(examples, num_classes)
    if one_way or learnt < SURE:  # with less contrast, single classes cannot be judged
        return one_way, ()
    ordered, planted = known_in_order(examples.scores), known_in_order(sentinels.scores)
    random = share_of_random(ordered, planted, num_classes)
    return (), find_called(examples, random, num_classes)


def _decide(verdict: Verdict, num_classes: int, strict: bool) -> Verdict:
    """The verdict with `keep` and `spared_classes` filled in."""
    scores, labels, threshold = verdict.scores, verdict.labels, verdict.threshold
    if math.isnan(threshold):
        raise InputError("the counterfactual is NaN: check the model's outputs")
    remove = scores >= threshold  # False for NaN
    if bool(remove.any()) and not bool((scores < threshold).any()):
        raise InputError(
            f"the verdict would remove all {len(scores):,} examples: every score reaches the"
            f" threshold {threshold:.3f} (percentile {verdict.percentile:g}); train longer before"
            " pruning, raise the percentile, or check the model's outputs"
        )
    spared = _classes_to_spare(remove, labels, num_classes)
    if len(spared):
        if strict:
            raise InputError(
                f"the verdict would empty classes or prune tiny ones: {spared.tolist()} (strict)"
            )
        spare = torch.zeros(num_classes + 1, dtype=torch.bool)  # last slot: label unknown (-1)
        spare[spared] = True
        for part, given in zip(remove.split(CHUNK), labels.split(CHUNK), strict=True):
            part &= ~spare[given.long()]
    return replace(verdict, keep=remove.logical_not_(), spared_classes=tuple(spared.tolist()))


def _classes_to_spare(remove: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Classes that would lose all their examples, and tiny ones that would lose any."""
    counts = torch.zeros(num_classes + 1, 2, dtype=torch.int64)  # row 0: label unknown (-1)
    for part, given in zip(remove.split(CHUNK), labels.split(CHUNK), strict=True):
        slot = (given.int() + 1) * 2 + part  # class, then kept or removed
        counts += torch.bincount(slot, minlength=counts.numel()).view_as(counts)
    kept, removed = counts[1:].unbind(1)
    tiny = kept + removed < FEWEST_EXAMPLES
    return ((removed > 0) & (tiny | (kept == 0))).nonzero().flatten()
