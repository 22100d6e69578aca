"""The examples that a page shows as pictures: suspects, worst first, and kept ones to compare."""

from __future__ import annotations

import base64
import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oddly.errors import InputError
from oddly.pictures import (
    MOST_BYTES,
    SIDE,
    Unreadable,
    file_names,
    list_formats,
    read_picture,
    shrink,
)
from oddly.records import (
    SAME_PICTURE,
    Run,
    Twin,
    choose_pictured,
    group_twins,
    has_reason,
    read_twins,
)
from oddly.report.classes import cut

MOST_PIXELS = 40_000_000  # of one file, to limit memory
BATCH = 64  # files between two updates of the progress

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Shown:
    """Examples as columns: entry i of each belongs to example i; None if the run does not say."""

    ids: Sequence[str]
    given: Sequence[int]
    suggested: Sequence[int | None]
    confidence: Sequence[float | None]
    score: Sequence[float | None]
    words: Sequence[str]
    anyway: Sequence[bool]
    """True for suspects whatever their score: copies that lose against another label."""
    true: Sequence[int] | None
    pictures: Sequence[str | None]
    """As data URLs."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Gallery:
    """The pictures of a page."""

    suspects: Shown
    total: int
    """Number of suspects, shown or not; 0 if nothing was removed."""
    kept: Shown
    pictureless: int
    """Number of shown examples without a picture."""

    @classmethod
    def from_run(
        cls, run: Run, unit: str, images: Path | None = None, progress: Progress | None = None
    ) -> Gallery:
        """Choose the examples and find their pictures, below `images` or where the run says."""
        verdicts = run.verdicts
        keep = verdicts["keep"].to_numpy(np.bool_)
        scores = verdicts["score"].to_numpy(np.float64)
        copies = group_twins(run.path, verdicts["id"].tolist()) if "reason" in verdicts else None
        suspects, kept = choose_pictured(keep, scores, copies)
        chosen = np.concatenate([suspects, kept])
        pictures = find_pictures(run, chosen, images, progress)
        first = len(suspects)
        return cls(
            suspects=show(run, suspects, pictures[:first], unit),
            total=int((~keep).sum()),
            kept=show(run, kept, pictures[first:], unit),
            pictureless=sum(picture is None for picture in pictures),
        )


def show(run: Run, index: NDArray[np.int64], pictures: Sequence[str | None], unit: str) -> Shown:
    """The columns for these examples."""
    rows = run.verdicts.iloc[index]
    scores = round_known(rows["score"], 4)
    percentiles = round_known(rows["counterfactual_percentile"], 1)
    suggested = rows["suggested_label"].tolist()
    same = has_reason(rows, SAME_PICTURE)
    by_rules = ~rows["keep"].to_numpy(np.bool_) & bool(run.by_rule)
    twins = read_twins(run.path) if same.any() else {}
    return Shown(
        ids=[cut(str(name)) for name in rows["id"]],
        given=rows["given_label"].tolist(),
        suggested=[label if label >= 0 else None for label in suggested],
        confidence=round_known(rows["suggested_confidence"], 5),  # the page rounds it again
        score=scores,
        words=[
            _describe_copy(twins.get(name))
            if copy
            else describe_score(percentile, score, unit, by_rule)
            for percentile, score, name, copy, by_rule in zip(
                percentiles, scores, rows["id"], same, by_rules, strict=True
            )
        ],
        anyway=same.tolist(),
        true=None if run.truth is None else run.truth["true_label"].iloc[index].tolist(),
        pictures=pictures,
    )


def _describe_copy(twin: Twin | None) -> str:
    return SAME_PICTURE if twin is None else cut(twin.words)


def describe_score(
    percentile: float | None, score: float | None, unit: str, by_rule: bool = False
) -> str:
    """A score in words; `by_rule`: a suspect without a percentile is a systematic confusion."""
    if score is None:
        return "never seen in training"
    if percentile is None and by_rule:
        return "systematic confusion"
    if percentile is None:
        return f"{unit} {score:.2f}".replace("-", "−")
    if percentile >= 99.95:
        return "worse than every random label"
    if percentile < 0.05:
        return "better than every random label"
    digits = 0 if 1 <= percentile <= 99 else 1
    return f"worse than {percentile:.{digits}f} % of random labels"


def round_known(column: pd.Series[float], digits: int) -> list[float | None]:
    """Rounded values; None for missing ones."""
    return [None if np.isnan(v) else round(v, digits) for v in column.to_numpy(np.float64).tolist()]


def find_pictures(
    run: Run, index: NDArray[np.int64], images: Path | None, progress: Progress | None = None
) -> list[str | None]:
    """Each example's picture as a data URL, from its file or else from the run."""
    root = images or run.data_root
    ids = run.verdicts["id"].iloc[index].astype(str).tolist()
    try:
        stored = [run.thumbnails.get(i) for i in index.tolist()]
    except (InputError, KeyError):  # damaged: write the page without stored pictures
        stored = [None] * len(ids)

    def find(place: int) -> str | None:
        content = read_thumbnail(root, ids[place]) if root else None
        return as_address(content or stored[place])

    list_formats()  # load Pillow's plugins once, before several threads would
    found: list[str | None] = []
    # ignore Pillow's warnings about odd EXIF or large pictures
    with warnings.catch_warnings(), ThreadPoolExecutor(os.cpu_count()) as pool:
        warnings.simplefilter("ignore")
        for start in range(0, len(ids), BATCH):
            found += pool.map(find, range(start, min(start + BATCH, len(ids))))
            if progress:
                progress(len(found), len(ids))
    return found


def read_thumbnail(root: Path, name: str) -> bytes | None:
    """The small picture of a file; None if it is missing or cannot be read."""
    for candidate in file_names(name):
        try:
            return shrink(read_picture(os.path.join(root, candidate), SIDE, MOST_PIXELS))
        except (Unreadable, OSError, ValueError):  # hostile names, pictures that cannot be shrunk
            continue
    return None


def as_address(content: bytes | None) -> str | None:
    """A small WebP as a data URL; None for anything else."""
    if content is None or content[:4] != b"RIFF" or content[8:12] != b"WEBP":
        return None
    if len(content) > MOST_BYTES:
        return None
    return "data:image/webp;base64," + base64.b64encode(content).decode()
