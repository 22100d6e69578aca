"""Write a run folder and read it back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike

from oddly.errors import InputError, count, shown
from oddly.records.files import (
    TEMPORARY,
    append_row,
    read_json,
    read_parquet,
    read_rows,
    write_atomic,
    write_json,
    write_parquet,
)
from oddly.records.lock import LOCK
from oddly.records.tables import VerdictTable, label_column, name_column

FORMAT_VERSION = 1
OVERWRITE = "--overwrite (in Python overwrite=True)"
# In the order in which --overwrite removes them. `done` is first, so that a run with missing parts
# never looks finished; config.json is last, so that an interrupted removal still looks like a run.
_FILES = (
    *("done", "summary.json", "checkpoint.pt", "metrics.jsonl", "verdicts.parquet"),
    *("truth.parquet", "counterfactual.json", "model.safetensors", "thumbnails.parquet"),
    *("verdicts.csv", "unreadable.csv", "duplicates.csv", "suspects.txt", "cleanlab.csv"),
    *("label_studio.json", "fiftyone/labels.json", "fiftyone/data.json"),
    *("report.html", "environment.json", "config.json"),
)


class RunWriter:
    """Writes one run folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(
        cls,
        path: Path | str,
        config: Mapping[str, Any],
        environment: Mapping[str, Any],
        overwrite: bool = False,
    ) -> RunWriter:
        """Start a new run; removes an older run only with `overwrite`, and never other files."""
        path = Path(path)
        check_free(path, overwrite)
        path.mkdir(parents=True, exist_ok=True)
        _remove_run(path)
        write_json(path / "config.json", {**config, "format": FORMAT_VERSION})
        # the folder that relative paths in the settings start from
        write_json(path / "environment.json", {"folder": os.getcwd(), **environment})
        return cls(path)

    @classmethod
    def reopen(cls, path: Path | str, epoch: int) -> RunWriter:
        """Continue after `epoch`: removes rows of later epochs, and the marks of a finished run."""
        path = Path(path)
        _check_run(path)
        rows = [row for row in read_rows(path / "metrics.jsonl") if row["epoch"] <= epoch]
        for name in ("done", "summary.json", "report.html"):
            (path / name).unlink(missing_ok=True)
        _remove_temporary(path)
        write_atomic(path / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        return cls(path)

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        """Add one epoch's row; it is in the file when this returns."""
        append_row(self.path / "metrics.jsonl", row)

    def write_verdicts(self, verdicts: VerdictTable) -> None:
        """Write or replace the verdicts on all training examples."""
        write_parquet(self.path / "verdicts.parquet", verdicts.to_arrow())

    def write_truth(self, true_labels: ArrayLike, names: Sequence[str], given: ArrayLike) -> None:
        """Write the true labels, for scoring only."""
        true_labels, given = np.asarray(true_labels), np.asarray(given)
        columns = {
            "index": pa.array(np.arange(len(true_labels), dtype=np.int64)),
            "true_label": label_column(true_labels),
            "true_name": name_column(true_labels, names),
            "mislabelled": pa.array(true_labels != given),
        }
        write_parquet(self.path / "truth.parquet", pa.table(columns))

    def write_counterfactual(self, counterfactual: Mapping[str, Any]) -> None:
        """Write where the threshold came from."""
        write_json(self.path / "counterfactual.json", counterfactual)

    def write_thumbnails(self, thumbnails: Mapping[int, bytes]) -> None:
        """Write small pictures of some examples, by index, for pages to show."""
        columns = {
            "index": pa.array(list(thumbnails), pa.int64()),
            "image": pa.array(list(thumbnails.values()), pa.binary()),
        }
        write_parquet(self.path / "thumbnails.parquet", pa.table(columns))

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary and mark the run as finished."""
        write_json(self.path / "summary.json", summary)
        write_atomic(self.path / "done", "")


class Run:
    """A run folder, finished or not. Each part is read when you ask for it."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        _check_run(self.path)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The settings."""
        return read_json(self.path / "config.json")

    @property
    def environment(self) -> dict[str, Any]:
        """Versions and hardware."""
        said = self._read_if_there("environment.json") or {}
        return {name: value for name, value in said.items() if name != "folder"}

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """One row per finished epoch."""
        return read_rows(self.path / "metrics.jsonl")

    @property
    def summary(self) -> dict[str, Any]:
        """The main results; empty until the run is finished."""
        return self._read_if_there("summary.json") or {}

    @property
    def counterfactual(self) -> dict[str, Any] | None:
        """Where the threshold came from; None before the verdict, or if the method has none."""
        return self._read_if_there("counterfactual.json")

    @property
    def has_verdicts(self) -> bool:
        """Whether the verdicts are written yet."""
        return (self.path / "verdicts.parquet").exists()

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """One row per training example."""
        if not self.has_verdicts:
            raise InputError(f"{self.path}: no verdicts yet; continue the run with --resume")
        return read_parquet(self.path / "verdicts.parquet")

    @cached_property
    def truth(self) -> pd.DataFrame | None:
        """True labels, if known."""
        path = self.path / "truth.parquet"
        return read_parquet(path) if path.exists() else None

    @cached_property
    def thumbnails(self) -> dict[int, bytes]:
        """Small pictures (WebP) of some examples, by index; empty if the images are files."""
        path = self.path / "thumbnails.parquet"
        table = read_parquet(path) if path.exists() else pd.DataFrame({"index": [], "image": []})
        return dict(zip(table["index"].tolist(), table["image"], strict=True))

    @property
    def doubt(self) -> str | None:
        """Why not to trust the verdict, in one sentence; None if there is no such reason."""
        return self._sentence("doubt")

    @property
    def by_rule(self) -> str | None:
        """Which labels seem systematically wrong, in one sentence; None if none do."""
        return self._sentence("by_rule")

    @property
    def notes(self) -> list[str]:
        """Warnings to show first: `by_rule` and `doubt`, if set."""
        return [note for note in (self.by_rule, self.doubt) if note]

    @property
    def data_root(self) -> Path | None:
        """The folder that ids of image files are relative to; None if it does not exist."""
        path = self.find_path(str(self.config.get("data") or ""))
        if os.path.isfile(path):  # a table: paths are relative to its folder
            path = path.parent
        return path if self.config.get("data") and os.path.isdir(path) else None

    @property
    def is_done(self) -> bool:
        """Whether the run is finished."""
        return (self.path / "done").exists()

    @property
    def test_accuracy(self) -> float | None:
        """In percent, at the last epoch tested (not the best); None without a test set."""
        rows = [*self.metrics, self.summary]
        known = [row["test_accuracy"] for row in rows if row.get("test_accuracy") is not None]
        return float(known[-1]) if known else None

    def find_path(self, name: str) -> Path:
        """A file or folder named in the settings; relative ones start where the run did."""
        said = self._read_if_there("environment.json") or {}
        return Path(str(said.get("folder") or "")) / os.path.expanduser(name)

    def _sentence(self, name: str) -> str | None:
        said = self.summary.get(name)
        return said[:1].upper() + said[1:] + "." if isinstance(said, str) and said else None

    def _read_if_there(self, name: str) -> dict[str, Any] | None:
        path = self.path / name
        return read_json(path) if path.exists() else None

    def __repr__(self) -> str:
        parts = [str(self.summary.get("method") or self.config.get("method") or "run")]
        parts.append(
            "finished" if self.is_done else f"unfinished, {count(len(self.metrics), 'epoch')}"
        )
        if self.test_accuracy is not None:
            parts.append(f"test accuracy {self.test_accuracy:.2f} %")
        if self.doubt:
            parts.append("unreliable (.doubt)")
        return f"Run('{self.path}': {', '.join(parts)})"


def _find_format(path: Path) -> int | None:
    """The format version of the run in this folder; None where there is no run."""
    try:
        config = read_json(path / "config.json")
    except (OSError, InputError):
        return None
    version = config.get("format")
    return version if type(version) is int else None


def _check_run(path: Path) -> None:
    version = _find_format(path)
    if version is None:
        reason = "not a run folder" if path.exists() else "no such folder"
        raise InputError(
            f"{path}: {reason}; expected a folder written by 'oddly clean' or 'oddly train'"
        )
    if version != FORMAT_VERSION:
        reason = f"has run format {version}, but this version of oddly reads {FORMAT_VERSION}"
        raise InputError(f"{path} {reason}; use the version that wrote it, or train again")


def check_free(path: Path, overwrite: bool) -> None:
    """Refuse a folder in which no run can begin; nothing is written."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file; choose another --out")
    present = [file for file in path.glob("*") if file.suffix != TEMPORARY and file.name != LOCK]
    if present and _find_format(path) is None:
        raise InputError(f"{path} is not empty and not a run folder; choose another --out")
    if not present or overwrite:
        return
    # Name the data: the user may have another folder of that name in mind.
    data = Run(path).config.get("data")
    of = f" of {shown(str(data))}" if data else ""
    if (path / "done").exists():
        hint = f"choose another --out or pass {OVERWRITE}"
        raise InputError(f"{path} already contains a finished run{of}; {hint}")
    hint = f"pass --resume (resume=True) to continue it, or {OVERWRITE}"
    raise InputError(f"{path} already contains an unfinished run{of}; {hint}")


def _remove_run(path: Path) -> None:
    """Remove all files of a run and its exports, but no other files."""
    for name in _FILES:
        (path / name).unlink(missing_ok=True)
    with suppress(OSError):  # it does not exist, or contains other files
        (path / "fiftyone").rmdir()
    _remove_temporary(path)


def _remove_temporary(path: Path) -> None:
    """Remove incomplete files of a killed process."""
    for file in path.glob(f".*{TEMPORARY}"):
        file.unlink(missing_ok=True)
