"""Describe a run: a hash of its settings, versions and hardware."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from oddly.records.files import plain

_PACKAGES = (
    *("torch", "torchvision", "timm", "numpy", "pandas", "pyarrow", "scikit-learn"),
    *("safetensors", "lightning", "transformers", "accelerate"),
)


def config_hash(config: Mapping[str, Any]) -> str:
    """A hash of the settings, 12 hex digits; the order of keys does not matter."""
    # "format" is added when config.json is written and must not change the hash
    settings = {key: value for key, value in plain(config).items() if key != "format"}
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def environment(extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Versions and hardware; `extra` is what only the caller knows, such as the device."""
    return {
        "oddly": _version("oddly"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "cpu_model": _cpu_model(),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        **(extra or {}),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # not installed; for oddly itself: a bare checkout
        return None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
