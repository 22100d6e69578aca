"""The files of the comparison: what jobs leave, and one small JSON per cell of the table.

RESULTS/CASE--METHOD--seedS.json    a cell: figures, settings, hardware, curves
WORK/outputs/CASE/seedS/            labels.npz, then JOB.npz with JOB.json last: the job is done
WORK/checkpoints/CASE/seedS/JOB/    where a stopped job goes on; removed once it is done
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray

from oddly.benchmarks.detection.cases import Case, load_case
from oddly.benchmarks.detection.jobs import Arrays, Job
from oddly.data.base import LabelledData
from oddly.errors import InputError
from oddly.records import write_atomic, write_json
from oddly.records.files import read_json


@dataclass(frozen=True)
class Labels:
    """The labels of a case, for verdicts and their scores."""

    given: NDArray[np.int64]
    true: NDArray[np.int64]


@dataclass(frozen=True)
class Store:
    """Where everything lies."""

    results: Path
    work: Path

    def cell(self, case: str, method: str, seed: int) -> Path:
        return self.results / f"{case}--{method}--seed{seed}.json"

    def read_cell(self, case: str, method: str, seed: int) -> dict[str, Any] | None:
        path = self.cell(case, method, seed)
        return read_json(path) if path.exists() else None

    def write_cell(self, cell: dict[str, Any]) -> None:
        self.results.mkdir(parents=True, exist_ok=True)
        write_json(self.cell(cell["case"]["name"], cell["method"], cell["seed"]), cell)

    def outputs(self, case: str, seed: int) -> Path:
        return self.work / "outputs" / case / f"seed{seed}"

    def checkpoints(self, job: Job) -> Path:
        return self.work / "checkpoints" / job.case.name / f"seed{job.seed}" / job.name

    def is_done(self, job: Job) -> bool:
        return self._info(job).exists()

    def write_job(self, job: Job, arrays: Arrays, info: dict[str, Any]) -> None:
        """Write the arrays first; the existence of the JSON then means that they are complete."""
        folder = self.outputs(job.case.name, job.seed)
        folder.mkdir(parents=True, exist_ok=True)
        _save(folder / f"{job.name}.npz", arrays)
        write_json(self._info(job), info)

    def read_job(self, job: Job) -> tuple[Arrays, dict[str, Any]]:
        info = read_json(self._info(job))
        return {} if "error" in info else _load(self._info(job).with_suffix(".npz")), info

    def remove_job(self, job: Job) -> None:
        """Remove the JSON first; arrays without it do not count."""
        self._info(job).unlink(missing_ok=True)
        self._info(job).with_suffix(".npz").unlink(missing_ok=True)

    def load(self, case: Case, seed: int, data_dir: Path | None) -> LabelledData:
        """The case's data; given labels are drawn once and then read from a file.

        Instance noise computes with pixels in floating point, so another machine could draw other
        labels.
        """
        data = load_case(case, seed, data_dir)
        folder = self.outputs(case.name, seed)
        if not (folder / "labels.npz").exists():
            assert data.true_labels is not None
            folder.mkdir(parents=True, exist_ok=True)
            dtype = np.uint8 if len(data.class_names) <= 256 else np.int32
            given, true = (
                labels.numpy().astype(dtype) for labels in (data.train.labels, data.true_labels)
            )
            _save(folder / "labels.npz", {"given": given, "true": true})
        labels = self.labels(case, seed)
        true_labels = torch.from_numpy(labels.true)
        if not torch.equal(true_labels, _truth(data)):
            raise InputError(f"{folder / 'labels.npz'} belongs to different data; remove it")
        return replace(
            data.with_given_labels(torch.from_numpy(labels.given)), true_labels=true_labels
        )

    def labels(self, case: Case, seed: int) -> Labels:
        arrays = _load(self.outputs(case.name, seed) / "labels.npz")
        return Labels(arrays["given"].astype(np.int64), arrays["true"].astype(np.int64))

    def _info(self, job: Job) -> Path:
        return self.outputs(job.case.name, job.seed) / f"{job.name}.json"


def _truth(data: LabelledData) -> torch.Tensor:
    assert data.true_labels is not None
    return data.true_labels


def _save(path: Path, arrays: Arrays) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    write_atomic(path, content.getvalue())


def _load(path: Path) -> Arrays:
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InputError(f"{path} cannot be read ({error}); remove it and its .json") from None
