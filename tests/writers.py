"""Other processes that write a run folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOLD = """
import os, sys, time
from pathlib import Path
from oddly.records import writing
how = sys.argv[2]
with writing(Path(sys.argv[1])):
    forked = how != "alone" and os.fork() == 0
    if how == "leave":
        sys.exit() if forked else os.wait()
    if forked or how != "outlive":
        print(os.getpid(), flush=True)
    time.sleep(60)
"""


@contextmanager
def another_writer(folder: Path, how: str = "alone") -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that writes `folder` until it is killed, and the process that is ready."""
    command = [sys.executable, "-c", HOLD, str(folder), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        ready = int(process.stdout.readline())
        try:
            yield process, ready
        finally:
            process.kill()
