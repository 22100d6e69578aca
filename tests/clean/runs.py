"""A run folder as cleaning leaves it, without any training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from oddly.records import Run, RunWriter, VerdictTable


def write_run(
    path: Path,
    data: str,
    ids: Sequence[str],
    removed: int,
    given: Sequence[int] | None = None,
    class_names: Sequence[str] = ("a", "b"),
) -> Run:
    """All are given class a, or as said; the first `removed` go, the worst first, for b."""
    n = len(ids)
    keep = np.arange(n) >= removed
    writer = RunWriter.create(path, {"data": data, "method": "odd"}, {})
    table = VerdictTable(
        ids=ids,
        given_labels=np.zeros(n, int) if given is None else np.array(given),
        losses=np.linspace(5, 1, n),
        scores=np.where(keep, -1.0, 3.0) - np.arange(n) / n,
        counterfactual_percentiles=None,
        threshold=0.0,
        keep=keep,
        suggested_labels=np.where(keep, 0, 1),
        suggested_confidences=np.full(n, 0.75),
        class_names=class_names,
    )
    writer.write_verdicts(table)
    writer.finish({"estimated_noise": None})
    (path / "unreadable.csv").write_text("id,reason\n")
    (path / "duplicates.csv").write_text("group,id,given_name,conflicting,same\n")
    return Run(path)
