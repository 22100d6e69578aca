"""Choose the examples to show as pictures; the writer and the pages use the same choice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_SUSPECTS = 5_000
HIGHEST = 200  # kept examples with the highest scores; on the page only if nothing was removed
KEPT = 48  # random kept examples on the page
SEED = 0  # so that all pages of a run show the same ones


def choose_pictured(
    keep: NDArray[Any], scores: NDArray[Any], pictures: NDArray[Any] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of the suspects, most suspicious first, and of kept examples drawn at random.

    If nothing was removed, the highest scores are shown as suspects, without examples that have no
    score (never seen). Copies of a picture (`pictures`, from `group_twins`) come first, side by
    side, as they are the surest suspects.
    """
    keep, scores = np.asarray(keep, np.bool_), np.asarray(scores, np.float64)
    ranks = np.where(np.isnan(scores), -np.inf, scores)
    if keep.all():
        chosen, most = np.flatnonzero(~np.isnan(scores)), HIGHEST
    else:
        chosen, most = np.flatnonzero(~keep), MOST_SUSPECTS
    groups = np.zeros(len(keep)) if pictures is None else pictures
    first = np.where(groups > 0, groups, np.inf)
    suspects = chosen[np.lexsort((-ranks[chosen], first[chosen]))][:most]  # stable
    others = np.setdiff1d(np.flatnonzero(keep), suspects, assume_unique=True)
    generator = np.random.default_rng(SEED)
    kept = generator.choice(others, min(KEPT, len(others)), replace=False, shuffle=False)
    return suspects.astype(np.int64), np.sort(kept).astype(np.int64)


def choose_stored(
    keep: NDArray[Any], scores: NDArray[Any], pictures: NDArray[Any] | None = None
) -> NDArray[np.int64]:
    """Indices of all examples whose small picture a run stores, in ascending order.

    Those of the page, kept copies of suspects, and the next ones for `oddly review --top`.
    """
    keep, scores = np.asarray(keep, np.bool_), np.asarray(scores, np.float64)
    suspects, kept = choose_pictured(keep, scores, pictures)
    seen = np.flatnonzero(keep & ~np.isnan(scores))
    further = seen[np.argsort(-scores[seen], kind="stable")][:HIGHEST]
    chosen = [suspects, kept, further]
    if pictures is not None:
        chosen.append(np.flatnonzero((pictures > 0) & np.isin(pictures, pictures[suspects])))
    return np.unique(np.concatenate(chosen)).astype(np.int64)
