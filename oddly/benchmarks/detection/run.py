"""`oddly benchmark detection`: from the options to rows."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oddly.benchmarks.detection.cases import CASES, SMALL_CASES, Case
from oddly.benchmarks.detection.conduct import Cell, Tell, conduct, list_cells
from oddly.benchmarks.detection.methods import METHODS
from oddly.benchmarks.detection.store import Store
from oddly.benchmarks.detection.table import read_rows
from oddly.benchmarks.detection.training import Conditions
from oddly.errors import InputError, count, unknown_name

RESULTS = Path(__file__).parents[2] / "results" / "detection"
WORK = Path("runs/detection")


def measure(
    train: bool = False,
    minutes: float | None = None,
    at_once: int = 1,
    cases: Sequence[str] = (),
    methods: Sequence[str] = (),
    seed: int = 0,
    small: bool = False,
    results: Path | None = None,
    work: Path | None = None,
    data_dir: Path | None = None,
    device: str = "auto",
    forget: bool = False,
    tell: Tell = lambda line: None,
) -> dict[str, Any]:
    """Train what is missing, if asked to; returns everything that is stored, as rows."""
    known: Mapping[str, Case] = SMALL_CASES if small else CASES
    chosen = [known[name] for name in _choose("case", cases, known)]
    cells = list_cells(chosen, _choose("method", methods, METHODS), seed)
    work = work or (Path(f"{WORK}-small") if small else WORK)
    store = Store(results or (work / "results" if small else RESULTS), work)
    if forget:
        forget_cells(cells, store, tell)
    if train:
        deadline = None if minutes is None else time.time() + 60 * minutes
        conduct(cells, Conditions(store, data_dir, device, deadline, at_once), tell)
    elif minutes is not None:
        raise InputError("--minutes only works with --next")
    return {"rows": read_rows(cells, store)}


def forget_cells(cells: Sequence[Cell], store: Store, tell: Tell) -> None:
    """Remove the stored results of these cells and of their jobs."""
    for cell in cells:
        store.cell(cell.case.name, cell.method, cell.seed).unlink(missing_ok=True)
        for job in cell.jobs():
            shutil.rmtree(store.checkpoints(job), ignore_errors=True)
            store.remove_job(job)
    tell(f"deleted the results of {count(len(cells), 'cell')}")


def _choose(kind: str, wanted: Sequence[str], known: Mapping[str, Any]) -> list[str]:
    """The wanted names, which must be known, in the order of the table; by default all."""
    names = [name.strip() for entry in wanted for name in entry.split(",")]
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
    return [name for name in known if not names or name in names]
