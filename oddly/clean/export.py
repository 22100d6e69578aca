"""Export a run's verdicts for other tools, in the formats that their docs describe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from oddly.clean.leave import data_root, locate
from oddly.data.huggingface import is_huggingface
from oddly.errors import InputError, first_few, unknown_name
from oddly.records import (
    DECIDED,
    SAME_PICTURE,
    Run,
    has_reason,
    write_atomic,
    write_csv,
    write_json,
)

BREAKS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
"""Characters that some reader treats as the end of a line."""


def export_ids(run: Run, suspects: pd.DataFrame) -> Path:
    """The suspects' ids, one per line, most suspicious first; a line break in one as `\\n`."""
    path = run.path / "suspects.txt"
    write_atomic(path, "".join(f"{_on_one_line(name)}\n" for name in suspects.id))
    return path


def _on_one_line(name: str) -> str:
    return "".join(sign if sign not in BREAKS else ascii(sign)[1:-1] for sign in name)


def about_breaks(suspects: pd.DataFrame) -> str | None:
    """A note about ids that contain line breaks; None if there are none."""
    broken = [name for name in suspects.id if BREAKS.intersection(name)]
    if not broken:
        return None
    many = (
        "1 id contains a line break"
        if len(broken) == 1
        else f"{len(broken):,} ids contain line breaks"
    )
    return f"{many}, written as \\n in suspects.txt: {first_few(broken, 3)}"


def export_cleanlab(run: Run, suspects: pd.DataFrame) -> Path:
    """The columns of `Datalab.get_issues("label")`, for every example in the order of the data.

    label_score is in 0..1, low is suspicious: 1 / (1 + exp(score - threshold)), so 0.5 is the
    threshold. It is 0 for copies that lose against another label, and 1 if a person decided.
    """
    verdicts = run.verdicts
    path = run.path / "cleanlab.csv"
    header = ("id", "is_label_issue", "label_score", "given_label", "predicted_label")
    flagged = verdicts.id.isin(set(suspects.id))
    rows = zip(
        verdicts.id,
        flagged,
        np.round(label_scores(verdicts), 6),
        verdicts.given_name,
        verdicts.suggested_name,
        strict=True,
    )
    write_csv(path, header, rows)
    return path


def label_scores(verdicts: pd.DataFrame) -> Any:
    distance = (verdicts.score - verdicts.threshold).astype("float64").fillna(-50.0)
    scores = 1 / (1 + np.exp(distance.clip(-50, 50).to_numpy()))
    scores[has_reason(verdicts, SAME_PICTURE)] = 0.0
    scores[has_reason(verdicts, DECIDED)] = 1.0
    return scores


def export_fiftyone(run: Run, suspects: pd.DataFrame) -> Path:
    """A FiftyOneImageClassificationDataset folder: labels.json, and data.json for the files."""
    root, folder = data_root(run), run.path / "fiftyone"
    folder.mkdir(exist_ok=True)
    labels = {}
    flagged = set(suspects.id)
    for row in run.verdicts.itertuples():
        labels[row.id] = {
            "label": row.given_name,
            "attributes": {
                "suspect": row.id in flagged,
                "suggested": _text(row.suggested_name),
                "suggested_confidence": _number(row.suggested_confidence),
                "score": _number(row.score),
                **_reason(row),
            },
        }
    classes = list(dict.fromkeys(run.verdicts.given_name))
    write_json(folder / "labels.json", {"classes": classes, "labels": labels})
    write_json(folder / "data.json", {name: locate(root, name) for name in run.verdicts.id})
    return folder


def export_label_studio(run: Run, suspects: pd.DataFrame) -> Path:
    """Tasks with a prediction each, for `<Choices name="label" toName="image">`.

    Images are named as Label Studio's local storage serves them, from the folder of the data.
    """
    path = run.path / "label_studio.json"
    tasks = [_task(row, data_root(run)) for row in suspects.itertuples()]
    write_json(path, tasks)
    return path


def _task(row: Any, root: str) -> dict[str, Any]:
    served = quote(os.fsencode(os.path.relpath(locate(root, row.id), os.path.dirname(root))))
    task: dict[str, Any] = {
        "data": {
            "image": f"/data/local-files/?d={served}",
            "id": row.id,
            "given_label": row.given_name,
            **_reason(row),
        }
    }
    if (suggested := _text(row.suggested_name)) is not None:
        result = {
            "from_name": "label",
            "to_name": "image",
            "type": "choices",
            "value": {"choices": [suggested]},
        }
        confidence = _number(row.suggested_confidence)
        prediction = {"model_version": "oddly", "score": confidence, "result": [result]}
        task["predictions"] = [prediction]
    return task


def _reason(row: Any) -> dict[str, str]:
    """What decided instead of the score, if anything did."""
    reason = _text(getattr(row, "reason", None))
    return {} if reason is None else {"reason": reason}


def _text(value: Any) -> str | None:
    return None if pd.isna(value) else str(value)


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else round(float(value), 6)


OF_FILES = ("fiftyone", "label-studio")
"""Exports that refer to image files, which a Hugging Face dataset does not have."""
EXPORTS: dict[str, Callable[[Run, pd.DataFrame], Path]] = {
    "cleanlab": export_cleanlab,
    "fiftyone": export_fiftyone,
    "label-studio": export_label_studio,
    "ids": export_ids,
}


def check_exports(names: Iterable[str], source: str) -> None:
    """Refuse unknown exports, and those that need image files if the source has none."""
    for name in names:
        if name not in EXPORTS:
            raise unknown_name("export", name, EXPORTS)
        if name in OF_FILES and os.path.exists(source) and is_huggingface(Path(source)):
            raise InputError(
                f"--export {name} needs image files, but a Hugging Face dataset has rows;"
                " use cleanlab or ids"
            )
