"""The scripts in examples/ run and do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("script", "changed", "longest"),
    [("plain_loop", 4, 60), ("lightning_cifar", 4, 75), ("huggingface_images", 2, 70)],
)
def test_few_lines_change(script: str, changed: int, longest: int) -> None:
    lines = (ROOT / f"examples/{script}.py").read_text().splitlines()
    assert len([line for line in lines if line.endswith("# oddly")]) == changed
    assert len(lines) <= longest


@pytest.mark.parametrize(
    ("script", "extra", "exact", "enough"),
    [
        ("plain_loop", None, 0.9, 95),
        ("lightning_cifar", "lightning", 0.9, 95),
        ("huggingface_images", "transformers", 0.9, 93),
    ],
)
def test_an_example_finds_the_wrong_labels(
    script: str, extra: str | None, exact: float, enough: float, tmp_path: Path
) -> None:
    if extra:
        pytest.importorskip(extra)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(ROOT / f"examples/{script}.py")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    figures = re.search(r"precision ([\d.]+) +recall ([\d.]+) +test accuracy ([\d.]+)", done.stdout)
    assert figures, done.stdout
    precision, recall, accuracy = map(float, figures.groups())
    assert precision > exact and recall > 0.9 and accuracy > enough
    assert script != "plain_loop" or "examples removed" in done.stdout  # the verdict in a line
