"""Finished trainings as small JSON files; every table and figure is made from these."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from oddly.engine.config import RunConfig
from oddly.engine.resume import MOVABLE
from oddly.errors import InputError
from oddly.records import Run, config_hash, write_atomic
from oddly.records.files import plain

PACKAGE = Path(__file__).parents[1]
STORED = PACKAGE / "results" / "reproduce"
EXACT = ("identity", "config")  # stored without rounding, as runs are found by them
CURVE = ("epoch", "lr", "train_loss", "test_accuracy", "test_accuracy_top5", "kept", "seconds")


def identity(config: RunConfig) -> dict[str, Any]:
    """The settings that affect what a run learns, if they differ from the default.

    So a setting that is added later, with a default that changes nothing, changes no names.
    """
    chosen = {}
    for each in fields(RunConfig):
        value = getattr(config, each.name)
        if each.name == "settings":
            value = dict(sorted(value.items()))
        if each.name not in MOVABLE and value != each.default and value != {}:
            chosen[each.name] = value
    return chosen


def run_name(config: RunConfig) -> str:
    """A readable name with a hash, unique for each run."""
    noise = f"-{config.noise_kind}{100 * config.noise:g}" if config.noise else ""
    data = Path(config.data).name.replace(":", "-")
    readable = f"{data}{noise}-{config.method}-{config.model}-seed{config.order_seed}"
    return f"{readable}-{config_hash(identity(config))[:8]}"


@dataclass(frozen=True)
class Result:
    """One training as stored."""

    identity: Mapping[str, Any]
    config: Mapping[str, Any]
    summary: Mapping[str, Any]
    """Empty if only some of the epochs were trained."""
    curve: Mapping[str, list[Any]]
    snapshots: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By number of finished epochs: numbers about the losses of all examples."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""
    """A fingerprint of the sources that trained it."""
    fork: Mapping[str, Any] | None = None
    """The run whose first epochs were taken over, and their number."""
    also: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By dataset: accuracy on a further test set."""

    @property
    def is_finished(self) -> bool:
        return bool(self.summary)

    @property
    def images_per_second(self) -> float | None:
        """The median over epochs, so neither the first, which compiles, nor a short last one."""
        seconds, kept = self.curve.get("seconds") or [], self.curve.get("kept") or []
        rates = sorted(k / s for k, s in zip(kept, seconds, strict=True) if s)
        return rates[len(rates) // 2] if rates else None


PARTS = tuple(each.name for each in fields(Result))  # later versions may store more
MAPPINGS = tuple(name for name in PARTS if name not in ("code", "fork"))


class Store:
    """Stored results: the package's own, and those in a folder of yours, which take precedence."""

    def __init__(self, folder: Path = STORED) -> None:
        self.folder = folder
        self._read: dict[Path, tuple[float, Result]] = {}

    def find(self, config: RunConfig) -> Result | None:
        name = f"{run_name(config)}.json"
        for folder in (self.folder, STORED):
            if (folder / name).is_file():
                result = self._load(folder / name)
                if result.identity != identity(config):
                    raise InputError(f"{folder / name} contains a different run than its name says")
                return result
        return None

    def __iter__(self) -> Iterator[Result]:
        names = {path.name: path for path in (*STORED.glob("*.json"), *self.folder.glob("*.json"))}
        yield from (self._load(names[name]) for name in sorted(names))

    def save(
        self,
        config: RunConfig,
        run: Run,
        snapshots: Mapping[int, Mapping[str, Any]],
        fork: Mapping[str, Any] | None = None,
        also: Mapping[str, Mapping[str, float]] | None = None,
    ) -> Path:
        """Store the results of a run so far; earlier snapshots are kept."""
        before = self.find(config)
        looked = {str(epoch): look for epoch, look in snapshots.items()}
        if before:
            looked = {**before.snapshots, **looked}
        looked = dict(sorted(looked.items(), key=lambda item: int(item[0])))
        if before and before.is_finished and not run.is_done:
            content = {**vars(before), "snapshots": looked}  # trained again only for snapshots
        else:
            content = _describe(config, run) | {
                "snapshots": looked,
                "fork": fork,
                "also": also or {},
            }
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{run_name(config)}.json"
        short = {k: v if k in EXACT else _rounded(v) for k, v in content.items()}
        lines = (f"{json.dumps(key)}: {json.dumps(plain(value))}" for key, value in short.items())
        write_atomic(path, "{\n" + ",\n".join(lines) + "\n}\n")  # a line per part, not per number
        return path

    def check_writable(self) -> None:
        """Fail now if nothing could be stored later."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self.folder):
            pass

    def _load(self, path: Path) -> Result:
        changed = path.stat().st_mtime
        if path not in self._read or self._read[path][0] != changed:
            try:
                parts = json.loads(path.read_text(encoding="utf-8"))
                result = Result(**{name: parts[name] for name in PARTS if name in parts})
            except (ValueError, TypeError, RecursionError):
                result = None
            if result is None or not all(isinstance(getattr(result, n), Mapping) for n in MAPPINGS):
                raise InputError(f"{path} is not a stored result; remove it")
            self._read[path] = changed, result
        return self._read[path][1]


def _describe(config: RunConfig, run: Run) -> dict[str, Any]:
    rows = run.metrics
    return {
        "identity": identity(config),
        "config": {k: v for k, v in run.config.items() if k not in MOVABLE},
        "summary": run.summary if run.is_done else {},
        "curve": {name: [row.get(name) for row in rows] for name in CURVE},
        "environment": run.environment,
        "code": code_fingerprint(),
    }


@cache
def code_fingerprint() -> str:
    """A hash of the source files that affect what a run learns."""
    digest = hashlib.sha256()
    for room in ("core", "data", "engine", "methods", "models"):
        for file in sorted((PACKAGE / room).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _rounded(value: Any) -> Any:
    """Round floats to seven digits, more than are significant."""
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value
