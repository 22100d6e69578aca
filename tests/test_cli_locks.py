"""Two commands on one run folder: the second is kept out while the first lives."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oddly.records import Run
from oddly.records.lock import LOCK
from tests.clean.conftest import write_pictures
from tests.command import Command, start


@pytest.fixture
def oddly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A run that goes on and on: its folder and its process."""
    out = tmp_path / "live"
    command = ("train", "synthetic", "--method", "erm", "--epochs", 100_000, "--out", out)
    process = start(*command)
    try:
        deadline = time.monotonic() + 60
        while not (out / "metrics.jsonl").exists():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        yield out, process.pid
    finally:
        process.kill()
        process.communicate()


def test_a_live_run_keeps_other_writers_out(
    live: tuple[Path, int], oddly: Command, tmp_path: Path
) -> None:
    out, pid = live
    write_pictures(tmp_path / "photos", 4)
    begun = ("--out", out)
    for command in (
        ("train", "synthetic", *begun),
        ("train", "digits", "--epochs", 1, *begun, "--overwrite"),
        ("train", *begun, "--resume"),
        ("clean", tmp_path / "photos", *begun, "--overwrite"),
        ("clean", *begun, "--resume"),
    ):
        code, told, complaint = oddly(*command)
        assert (code, told) == (2, "") and complaint == (
            f"oddly: another process (pid {pid}) is writing to {out};"
            " wait for it or choose another --out\n"
        )
    assert Run(out).config["data"] == "synthetic" and Run(out).metrics[0]["epoch"] == 1


def test_a_killed_run_can_be_replaced(
    live: tuple[Path, int], oddly: Command, tmp_path: Path
) -> None:
    out, pid = live
    assert oddly("report", out)[0] == 0  # who only looks is welcome meanwhile
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    assert (out / LOCK).exists()
    code, _, complaint = oddly("train", "synthetic", "--out", out)
    assert (
        code == 2 and "already contains an unfinished run of synthetic; pass --resume" in complaint
    )
    quick = ("--method", "erm", "--epochs", 1, "--out", out)
    assert oddly("train", "synthetic", *quick, "--overwrite")[0] == 0
    assert [row["epoch"] for row in Run(out).metrics] == [1] and not (out / LOCK).exists()
