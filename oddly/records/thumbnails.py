"""Which examples of a run are shown as pictures: one choice for those who write and who read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_SUSPECTS = 5_000
HIGHEST = 200  # kept ones: shown where nothing was removed, stored where something was
KEPT = 48
SEED = 0  # so that two pages of a run show the same kept examples


def choose_pictured(
    keep: NDArray[Any], scores: NDArray[Any], pictures: NDArray[Any] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of the suspects, most suspicious first, and of kept examples drawn at random.

    Where nothing was removed, the highest scores stand for suspects; an example without a score
    (never seen) is none. Copies of one picture (`pictures`, as of `group_twins`) come first, side
    by side: the surest suspects.
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

    Those of its page, kept copies of suspects, and what `oddly review --top` comes to next.
    """
    keep, scores = np.asarray(keep, np.bool_), np.asarray(scores, np.float64)
    suspects, kept = choose_pictured(keep, scores, pictures)
    seen = np.flatnonzero(keep & ~np.isnan(scores))
    further = seen[np.argsort(-scores[seen], kind="stable")][:HIGHEST]
    chosen = [suspects, kept, further]
    if pictures is not None:
        chosen.append(np.flatnonzero((pictures > 0) & np.isin(pictures, pictures[suspects])))
    return np.unique(np.concatenate(chosen)).astype(np.int64)
