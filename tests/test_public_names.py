"""The public surface is small, pinned, and free of charge until it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import oddly

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "lightning", "pytorch_lightning", "transformers", "timm", "pandas", "sklearn")


def loaded_by(statement: str) -> set[str]:
    """Which heavy packages a fresh Python has loaded after `statement`."""
    code = f"{statement}; import sys; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_public_names() -> None:
    assert oddly.__all__ == [
        "Denoiser",
        "IndexedDataset",
        "InputError",
        "KeepSampler",
        "LossLedger",
        "Run",
        "Verdict",
        "clean",
        "denoise",
        "draw_losses",
        "find_head",
        "train",
    ]


@pytest.mark.parametrize("name", oddly.__all__)
def test_every_public_name_is_there(name: str) -> None:
    thing = getattr(oddly, name)
    assert thing.__name__ == name
    assert thing.__module__.startswith("oddly.")
    assert thing.__doc__


def test_whoever_asks_what_there_is_sees_the_public_names_alone() -> None:
    assert [name for name in dir(oddly) if not name.startswith("_")] == oddly.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'oddly' has no attribute 'purify'"):
        _ = oddly.purify


def test_importing_it_loads_nothing_heavy() -> None:
    assert loaded_by("import oddly") == set()


def test_an_error_can_be_caught_without_torch() -> None:
    assert loaded_by("from oddly import InputError") == set()


def test_the_core_needs_torch_alone() -> None:
    assert loaded_by("from oddly import Denoiser") == {"torch"}
