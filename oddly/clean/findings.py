"""What a run of `oddly clean` found, in the numbers that a user looks for first."""

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
FEW = 3  # classes with fewer suspects are listed last


@dataclass(frozen=True)
class Findings:
    """The results that `oddly clean` prints at the end."""

    images: int
    unreadable: int
    suspects: int
    readmitted: int
    """Suspects at first, kept in the end."""
    estimated_noise: dict[str, float] | None
    """rate, low, high; None if there were too few images, or no planted labels."""
    contrast: float | None
    """How well wrong and right labels were separated; None with few or no planted labels."""
    doubt: str | None
    """Why not to trust the verdict, if there is a reason."""
    classes: Sequence[tuple[str, int, int]]
    """Name, suspects, images; the largest share of a class first."""
    mostly_suspect: Sequence[tuple[str, int, int]]
    """All classes, if large enough to judge, of which more than half are suspects.

    Copies with different labels do not count, as they are not judged by their class.
    """
    pairs: Sequence[tuple[str, str, int]]
    """Most frequent first: given, suggested, how often."""
    decided: int
    """Number of labels that a person confirmed or set; they are never suspects."""
    duplicates: int
    """Number of pictures that occur more than once."""
    conflicting: int
    """How many of those have different labels."""
    contradicted: int
    """Number of suspects that are copies of these, whatever their score."""
    spreadsheet: str | None = None
    """A warning about opening the tables in a spreadsheet, if needed."""
    by_rule: str | None = None
    """A warning that labels seem systematically wrong, if they do."""
    closed: int = 0
    """Number of folders that could not be read."""
    copies: int = 0
    """Number of copies of all pictures with different labels."""


def suspects_of(run: Run, top: int | None = None) -> pd.DataFrame:
    """The removed examples, worst first; or with a budget, the `top` worst of all.

    If `top` is larger than the number of removed examples, the most suspicious kept ones follow,
    except for labels that a person decided.
    """
    verdicts = run.verdicts
    ranked = rank(verdicts[~has_reason(verdicts, DECIDED)], run)
    return ranked[~ranked.keep] if top is None else ranked.head(top)


def rank(verdicts: pd.DataFrame, run: Run) -> pd.DataFrame:
    """Sort as `oddly review` does.

    Removed examples come first, among them the copies of one picture together, then by score.
    """
    groups = {name: twin.group for name, twin in read_twins(run.path).items()}
    group = verdicts.id.astype(str).map(groups).astype("float64")  # NaN (no copy) sorts last
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
    scored = verdicts[~copies]  # copies say nothing about how a class is judged
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
    """Classes with suspects, the largest share first; by share, so that small classes count."""
    sizes: Any = verdicts.given_name.value_counts()
    hit: Any = suspects.given_name.value_counts()
    classes = [(str(name), int(k), int(sizes[name])) for name, k in hit.items() if k]
    return sorted(classes, key=lambda c: (c[1] >= FEW, c[1] / c[2], c[1]), reverse=True)
