"""The command line from inside a test, or as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oddly import cli

ROOT = Path(__file__).parents[1]
QUICK = ("--epochs", "3", "--prune-after", "1", "--percentile", "60", "--model", "resnet8")


class Command:
    """`oddly …` inside this process: exit code, stdout, stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        self.monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
        self.monkeypatch.setattr(sys, "argv", ["oddly", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        told = self.capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err


def heed_interrupts() -> None:
    """A shell's background job, as tests may be, hands down that SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """`python -m oddly …` as a process of its own, which heeds Ctrl-C."""
    options = {"preexec_fn": heed_interrupts, "stdout": subprocess.PIPE, **options}
    return subprocess.Popen(
        [sys.executable, "-m", "oddly", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
