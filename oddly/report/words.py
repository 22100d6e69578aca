"""What a run's page says in words: where its verdict comes from, what it can and cannot tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from oddly.errors import count, first_few
from oddly.records import SAME_PICTURE, Run, has_reason
from oddly.report.histogram import find_percentiles

NBSP = "\N{NO-BREAK SPACE}"


def shorten(value: Any, digits: int = 3) -> str:
    """Floats in so many digits, with a real minus sign; everything else as it is."""
    return f"{value:.{digits}g}".replace("-", "−") if isinstance(value, float) else str(value)


def tell_outcome(run: Run, verdicts: pd.DataFrame | None) -> str:
    """The run in one sentence."""
    if not run.is_done:
        epoch = run.metrics[-1]["epoch"] if run.metrics else 0
        of = run.config.get("epochs")
        many = f"{epoch} of {count(of, 'epoch')}" if of else count(epoch, "epoch")
        way_on = "The command that began it goes on, given --resume."
        return f"Not finished: {many} so far. {way_on}"
    if verdicts is None:
        return "This run recorded nothing about single images."
    examples, removed = len(verdicts), int((~verdicts["keep"]).sum())
    if rule := run.summary.get("rule"):
        are = "label is" if examples == 1 else "labels are"
        return f"{removed:,} of {examples:,} {are} held for wrong: {rule}."
    if run.counterfactual is None:
        return f"A run without a verdict: none of {examples:,} labels was judged."
    if not removed and run.doubt:
        return f"Nothing can be said of {examples:,} labels: the network has hardly learnt."
    if not removed:
        return f"No label of {examples:,} stands out: each looks better than a random one."
    look = "looks" if removed == 1 else "look"
    return (
        f"{removed:,} of {examples:,} labels {look} wrong"
        f"{', at random or by a rule' if run.by_rule else ''}"
        f"{', but this is not to be trusted' if run.doubt else ''}.{tell_copies(verdicts)}"
    )


def tell_copies(verdicts: pd.DataFrame) -> str:
    """How many of the suspects are such for another reason than what the network said."""
    copies = int((has_reason(verdicts, SAME_PICTURE) & ~verdicts["keep"].to_numpy(np.bool_)).sum())
    if not copies:
        return ""
    are = "is a copy" if copies == 1 else "are copies"
    return f" Of these, {copies:,} {are} of a picture that also occurs under another label."


def tell_threshold(rule: dict[str, Any], said: dict[str, Any], chosen: bool) -> list[str]:
    """Where the threshold came from; `chosen`: E was given by the user."""
    if not rule:
        return []
    draws = f"{rule['draws']:,} " if rule.get("draws") else ""
    source = {
        "sentinels": f"{draws}labels that were replaced by random ones on purpose (sentinels)",
        "weights": f"{draws}random labels drawn from the final layer's weights (the paper's rule)",
    }.get(str(rule.get("source")), f"{draws}random labels")
    lines = [f"The threshold was taken from {source}."]
    if rule.get("percentile") is not None and rule.get("threshold") is not None:
        place = find_percentiles(rule, np.asarray([rule["threshold"]]))
        aim = f"{rule['percentile']:g}{NBSP}%"
        passed = f"It was to let {aim} of these random labels pass."
        if place is not None:
            share = f"{place[0]:.0f}{NBSP}%"
            passed = f"It lets about {share} of these random labels pass (aim: {aim})."
        lines.append(passed)
    if rule.get("epoch") is not None:
        how = "a moment found while training"
        if chosen:
            how = "as asked for"
        elif rule.get("source") != "sentinels":  # nothing is planted that could tell when
            how = "3/8 of the epochs, as in the paper"
        lines.append(f"It was applied after epoch {rule['epoch']}, {how}.")
    if readmitted := said.get("readmitted"):
        many = "1 image was" if readmitted == 1 else f"{readmitted:,} images were"
        lines.append(f"Afterwards {many} readmitted: learnt without, the label fitted after all.")
    if spared := said.get("spared_classes"):
        named = first_few([str(name) for name in spared], 5)
        lines.append(f"Classes kept whole, too small or else emptied: {named}.")
    return lines


def tell_limits(
    judged: bool,
    truth_known: bool,
    rule: str | None = None,
    by_rule: bool = False,
    interval: bool = False,
) -> tuple[list[str], list[str]]:
    """What the verdict can tell, and what it cannot; `rule`: that of a method other than ODD.

    `by_rule`: labels were found that went wrong by one. `interval`: the estimated noise has one.
    """
    no_proof = "It is no proof. Hard, rare and unusual images are suspected too: look at them."
    worst_first = "The worst come first, so a short look from the top finds the most errors."
    truth = "True labels are known here, for scoring only; training did not see them."
    if rule:
        can = [f"A suspect is an image that this rule holds for mislabelled: {rule}.", worst_first]
        return [*can, truth] if truth_known else can, [no_proof]
    if not judged:
        return (
            ["Which images the network finds hardest: those with the highest loss come first."],
            ["Which labels are wrong. Plain training learns wrong labels by heart in the end."],
        )
    can = [
        "A suspect is an image whose label looked no better to the network than a random label"
        f"{', or that was labelled by the rule above' if by_rule else ''}.",
        worst_first,
        "The suggested label is what the trained network says; it has not trained on suspects.",
    ]
    cannot = [
        no_proof,
        "Systematic confusions, one class labelled as another, hide better than random errors"
        f"{'; of those named above some may be left' if by_rule else ''}.",
    ]
    if interval:
        cannot.append(
            "How many labels are wrong exactly. The lower end of the estimate counts only those"
            f" that look wholly random{' or follow that rule' * by_rule}; people's confusions"
            " mostly lie between its two ends."
        )
    if truth_known:
        can.append(truth)
    return can, cannot
