"""How well a verdict fits the truth, to the four digits that are stored."""

from __future__ import annotations

from typing import Any

from oddly.benchmarks.detection.figures import detection_figures
from oddly.core import Verdict

NAMES = ("precision", "recall", "f1", "best_f1", "average_precision")
COMPARED = ("removed", "f1", "precision", "recall")


def rounded(value: Any) -> float:
    return round(float(value), 4)


def figures(keep: Any, scores: Any, wrong: Any) -> dict[str, float]:
    """The removed share, and where labels are wrong what was found of them."""
    found = detection_figures(keep, scores, wrong)
    known = {
        name: rounded(found[name]) for name in NAMES if wrong.any() and found[name] is not None
    }
    return {"removed": rounded(found["removed_fraction"]), **known}


def side_by_side(without: Verdict, verdict: Verdict, wrong: Any) -> dict[str, dict[str, float]]:
    """Of one training judged `without` something and `with` it."""
    found = {}
    for name, one in (("without", without), ("with", verdict)):
        known = figures(one.keep.numpy(), one.scores.numpy(), wrong)
        found[name] = {key: known[key] for key in COMPARED if key in known}
    return found


def best_f1(verdict: Verdict, wrong: Any) -> float | None:
    """Of any cut on its scores; None where no label is wrong."""
    return figures(verdict.keep.numpy(), verdict.scores.numpy(), wrong).get("best_f1")
