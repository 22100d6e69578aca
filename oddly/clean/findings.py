"""What a cleaned run found, in the numbers a person asks for first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from oddly.core.verdict import FEWEST_EXAMPLES
from oddly.records import (
    DECIDED,
    SAME_PICTURE,
    Run,
    about_formulas,
    count_unread,
    has_reason,
    read_list,
    read_twins,
)

LISTED = 5  # classes and pairs that are named
FEW = 3  # suspects: a class with fewer is named after those with more


@dataclass(frozen=True)
class Findings:
    """The end of `oddly clean`, before anybody prints it."""

    images: int
    unreadable: int
    suspects: int
    readmitted: int
    """Suspects at first, kept in the end."""
    estimated_noise: dict[str, float] | None
    """rate, low, high; None where there were too few images to tell."""
    contrast: float | None
    """How far wrong and right labels lay apart; None where no or too few labels were planted."""
    doubt: str | None
    """Why none of this is to be trusted, where the network has hardly learnt."""
    classes: Sequence[tuple[str, int, int]]
    """Name, suspects, images; the largest share of a class first."""
    mostly_suspect: Sequence[tuple[str, int, int]]
    """All classes, of those large enough to be judged, of which more than half are suspects.

    Not counting copies under different labels: what they are judged by is not the class.
    """
    pairs: Sequence[tuple[str, str, int]]
    """Most frequent first: given, suggested, how often."""
    decided: int
    """Labels that a person had decided on: no suspects, whatever they look like."""
    duplicates: int
    """Pictures that occur more than once."""
    conflicting: int
    """Of those, how many under different labels."""
    contradicted: int
    """How many suspects are copies of these, whatever their score."""
    spreadsheet: str | None = None
    """What to mind before a spreadsheet opens the tables, if anything."""
    by_rule: str | None = None
    """That labels seem to have gone wrong by a rule."""
    closed: int = 0
    """Folders that could not be read."""
    copies: int = 0
    """How many copies the pictures under different labels have together."""


def suspects_of(run: Run, top: int | None = None) -> pd.DataFrame:
    """What the verdict would remove, worst first; with a budget, the `top` worst of all.

    A budget larger than the verdict goes on with the most suspicious of what it kept, but for
    labels that a person decided.
    """
    verdicts = run.verdicts
    ranked = rank(verdicts[~has_reason(verdicts, DECIDED)], run)
    return ranked[~ranked.keep] if top is None else ranked.head(top)


def rank(verdicts: pd.DataFrame, run: Run) -> pd.DataFrame:
    """Removed ones first, and of those pictures under two labels, side by side; then by score.

    As `oddly review` shows them.
    """
    groups = {name: twin.group for name, twin in read_twins(run.path).items()}
    group = verdicts.id.astype(str).map(groups).astype("float64")  # none comes last
    ranked = verdicts.assign(group=group).sort_values(
        ["keep", "group", "score"], ascending=[True, True, False], kind="stable"
    )
    return ranked.drop(columns="group")


def summarise(run: Run) -> Findings:
    """Count what a finished run found."""
    duplicates, twins = read_list(run.path / "duplicates.csv"), read_twins(run.path)
    verdicts = run.verdicts
    suspects = verdicts[~verdicts.keep]
    classes = _rank_classes(verdicts, suspects)
    copies = has_reason(verdicts, SAME_PICTURE)
    scored = verdicts[~copies]  # the others say nothing about how a class is judged
    judged = _rank_classes(scored, scored[~scored.keep])
    moved = suspects[suspects.suggested_label != suspects.given_label]
    pairs: Any = moved.groupby(["given_name", "suggested_name"], observed=True).size()
    pairs = pairs.sort_values(ascending=False, kind="stable")
    unreadable, closed = count_unread(run.path)
    return Findings(
        images=len(verdicts),
        unreadable=unreadable,
        suspects=len(suspects),
        readmitted=run.summary.get("readmitted") or 0,
        estimated_noise=run.summary.get("estimated_noise"),
        contrast=run.summary.get("contrast"),
        doubt=run.summary.get("doubt"),
        classes=classes[:LISTED],
        mostly_suspect=[c for c in judged if c[2] >= FEWEST_EXAMPLES and 2 * c[1] > c[2]],
        pairs=[(str(a), str(b), int(k)) for (a, b), k in pairs.items()][:LISTED],
        decided=int(has_reason(verdicts, DECIDED).sum()),
        duplicates=len({row.get("group") for row in duplicates}),
        conflicting=len({twin.group for twin in twins.values()}),
        contradicted=int(copies.sum()),
        spreadsheet=about_formulas([*verdicts.id, *verdicts.given_name.cat.categories]),
        by_rule=run.summary.get("by_rule"),
        closed=closed,
        copies=len(twins),
    )


def _rank_classes(verdicts: pd.DataFrame, suspects: pd.DataFrame) -> list[tuple[str, int, int]]:
    """Classes with suspects, by their share: a small class that is lost counts no less."""
    sizes: Any = verdicts.given_name.value_counts()
    hit: Any = suspects.given_name.value_counts()
    classes = [(str(name), int(k), int(sizes[name])) for name, k in hit.items() if k]
    return sorted(classes, key=lambda c: (c[1] >= FEW, c[1] / c[2], c[1]), reverse=True)
