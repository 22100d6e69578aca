"""How well a verdict fits the truth, to the four digits that are stored."""

from __future__ import annotations

from typing import Any

from oddly.benchmarks.detection.figures import detection_figures

NAMES = ("precision", "recall", "f1", "best_f1", "average_precision")


def rounded(value: Any) -> float:
    return round(float(value), 4)


def figures(keep: Any, scores: Any, wrong: Any) -> dict[str, float]:
    """The removed share, and where labels are wrong what was found of them."""
    found = detection_figures(keep, scores, wrong)
    known = {
        name: rounded(found[name]) for name in NAMES if wrong.any() and found[name] is not None
    }
    return {"removed": rounded(found["removed_fraction"]), **known}
