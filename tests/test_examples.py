"""The scripts in examples/ run and do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "examples/plain_loop.py"


def test_the_plain_loop_changes_at_most_eight_lines() -> None:
    marked = [line for line in SCRIPT.read_text().splitlines() if line.endswith("# oddly")]
    assert 0 < len(marked) <= 8
    assert len(SCRIPT.read_text().splitlines()) <= 60


def test_the_plain_loop_finds_the_wrong_labels() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "examples removed" in done.stdout
    figures = re.search(r"precision ([\d.]+) +recall ([\d.]+) +test accuracy ([\d.]+)", done.stdout)
    assert figures, done.stdout
    precision, recall, accuracy = map(float, figures.groups())
    assert precision > 0.9 and recall > 0.9 and accuracy > 95
