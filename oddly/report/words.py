"""The sentences on a run's page: where its verdict comes from, what it can and cannot tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from oddly.errors import count, first_few
from oddly.records import SAME_PICTURE, Run, has_reason
from oddly.report.histogram import find_percentiles

NBSP = "\N{NO-BREAK SPACE}"


def shorten(value: Any, digits: int = 3) -> str:
    """Floats with this many digits and a real minus sign; everything else as it is."""
    return f"{value:.{digits}g}".replace("-", "−") if isinstance(value, float) else str(value)


def tell_outcome(run: Run, verdicts: pd.DataFrame | None) -> str:
    """The run in one sentence."""
    if not run.is_done:
        epoch = run.metrics[-1]["epoch"] if run.metrics else 0
        of = run.config.get("epochs")
        many = f"{epoch} of {count(of, 'epoch')}" if of else count(epoch, "epoch")
        way_on = "To continue, run the same command with --resume."
        return f"Not finished: {many} so far. {way_on}"
    if verdicts is None:
        return "This run recorded nothing about individual images."
    examples, removed = len(verdicts), int((~verdicts["keep"]).sum())
    if rule := run.summary.get("rule"):
        return f"{removed:,} of {count(examples, 'label')} judged wrong: {rule}."
    if run.counterfactual is None:
        return f"No verdict: none of the {examples:,} labels was judged."
    if not removed and run.doubt:
        return f"No verdict on {examples:,} labels: the network has hardly learnt."
    if not removed:
        return tell_none_removed(run, verdicts)
    look = "looks" if removed == 1 else "look"
    return (
        f"{removed:,} of {examples:,} labels {look} wrong"
        f"{', randomly or systematically' if run.by_rule else ''}"
        f"{', but this verdict is unreliable' if run.doubt else ''}.{tell_copies(verdicts)}"
    )


def tell_none_removed(run: Run, verdicts: pd.DataFrame) -> str:
    """Why every label was kept: none looks wrong, or those that do were kept all the same."""
    examples = len(verdicts)
    if reaching := int((verdicts["score"] >= verdicts["threshold"]).sum()):
        look = "looks" if reaching == 1 else "look"
        return (
            f"{reaching:,} of {examples:,} labels {look} wrong, but none is removed: their classes"
            " would be emptied or are too small to judge, or a person has confirmed them."
        )
    if (run.config.get("settings") or {}).get("target_precision") is not None:
        return f"None of {examples:,} labels is removed: the target precision is out of reach."
    return f"No label out of {examples:,} stands out: each looks better than a random one."


def tell_copies(verdicts: pd.DataFrame) -> str:
    """A sentence about suspects that are copies with another label, if there are any."""
    copies = int((has_reason(verdicts, SAME_PICTURE) & ~verdicts["keep"].to_numpy(np.bool_)).sum())
    if not copies:
        return ""
    are = "is a copy" if copies == 1 else "are copies"
    return f" Of these, {copies:,} {are} of a picture that also occurs with another label."


def tell_threshold(rule: dict[str, Any], said: dict[str, Any], chosen: bool) -> list[str]:
    """Where the threshold came from; `chosen`: E was given by the user."""
    if not rule:
        return []
    draws = f"{rule['draws']:,} " if rule.get("draws") else ""
    source = {
        "sentinels": f"{draws}labels that were deliberately replaced by random ones (sentinels)",
        "weights": f"{draws}random labels drawn from the final layer's weights (the paper's rule)",
    }.get(str(rule.get("source")), f"{draws}random labels")
    lines = [f"The threshold comes from {source}."]
    if rule.get("percentile") is not None and rule.get("threshold") is not None:
        place = find_percentiles(rule, np.asarray([rule["threshold"]]))
        aim = f"{rule['percentile']:g}{NBSP}%"
        passed = f"The target was to let {aim} of these random labels pass."
        if place is not None:
            share = f"{place[0]:.0f}{NBSP}%"
            passed = f"It lets about {share} of these random labels pass (target: {aim})."
        lines.append(passed)
    if rule.get("epoch") is not None:
        how = "found during training"
        if chosen:
            how = "as you chose"
        elif rule.get("source") != "sentinels":  # only sentinels show when to prune
            how = "3/8 of the epochs, as in the paper"
        lines.append(f"It was applied after epoch {rule['epoch']}, {how}.")
    if readmitted := said.get("readmitted"):
        many = "1 image was" if readmitted == 1 else f"{readmitted:,} images were"
        lines.append(
            f"Later, {many} readmitted: without training on it, the label fitted after all."
        )
    if spared := said.get("spared_classes"):
        named = first_few([str(name) for name in spared], 5)
        lines.append(f"Classes kept whole because they are small or would be emptied: {named}.")
    return lines


def tell_limits(
    judged: bool,
    truth_known: bool,
    rule: str | None = None,
    by_rule: bool = False,
    interval: bool = False,
) -> tuple[list[str], list[str]]:
    """What the verdict can tell, and what it cannot.

    `rule`: the rule of a method other than ODD. `by_rule`: systematically wrong labels were found.
    `interval`: the estimated noise has bounds.
    """
    no_proof = "It is not proof: hard, rare and unusual images are suspects too, so look at them."
    worst_first = (
        "The worst come first, so starting at the top finds the most errors in the least time."
    )
    truth = "True labels are known here and used for scoring only; training did not see them."
    if rule:
        can = [f"A suspect is an image that this rule judges mislabelled: {rule}.", worst_first]
        return [*can, truth] if truth_known else can, [no_proof]
    if not judged:
        return (
            ["Which images the network finds hardest: the highest losses come first."],
            ["Which labels are wrong: plain training memorises wrong labels in the end."],
        )
    can = [
        "A suspect is an image whose label looked no better to the network than a random label"
        f"{', or that shows the systematic confusion above' if by_rule else ''}.",
        worst_first,
        "The suggested label is the prediction of the network, which has not trained on suspects.",
    ]
    cannot = [
        no_proof,
        "Systematic confusions of one class with another are harder to find than random errors"
        f"{'; some of those above may remain' if by_rule else ''}.",
    ]
    if interval:
        cannot.append(
            "Exactly how many labels are wrong. The lower bound of the estimate counts only those"
            f" that look entirely random{' or systematic' * by_rule}; plausible human errors"
            " mostly lie between the two bounds."
        )
    if truth_known:
        can.append(truth)
    return can, cannot
