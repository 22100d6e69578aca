"""oddly compare as a user meets it."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from oddly.compare import cell
from oddly.records import Run
from tests.command import Command, start


@pytest.fixture
def oddly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def test_a_comparison(oddly: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    out = tmp_path / "out"
    command = ("compare", "synthetic", "--methods", "erm, gce", "--seeds", 2, "--noise", 0.3)
    command += ("--epochs", 2, "--out", out, "--set", "gce.q=0.5", "--warmup", 0.5, "--cutout", 2)
    code, told, complaint = oddly(*command)
    assert code == 0, complaint
    for words in ("test accuracy", "AP", "cost", "gce", "±", str(out / "compare.html")):
        assert words in told
    config = json.loads((out / "gce-0/config.json").read_text())
    assert (config["settings"]["q"], config["warmup"], config["cutout"]) == (0.5, 0.5, 2)
    assert (out / "compare.html").read_text().startswith("<!doctype html>")
    code, told, _ = oddly(*command, "--json")
    assert code == 0 and json.loads(told) == json.loads((out / "compare.json").read_text())
    page = (out / "compare.html").read_text()
    (out / "compare.html").unlink()
    assert oddly("report", out)[0] == 0
    assert (out / "compare.html").read_text() == page
    fewer = [word if word != "erm, gce" else "gce" for word in command]
    told = oddly(*fewer)[1]
    way = "; to see them too, use --methods gce,erm --seeds 2"
    assert f"(erm-0, erm-1){way}\n" in told
    assert f"(erm-0, erm-1){way}." in (out / "compare.html").read_text()


def test_a_folder_without_a_test_set_is_compared_all_the_same(
    oddly: Command, tmp_path: Path
) -> None:
    for k, name in enumerate(("cat", "dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(20):
            picture = Image.new("RGB", (8, 8), (120 * k, 6 * i, 0))
            picture.save(tmp_path / "photos" / name / f"{i}.png")
    out = tmp_path / "out"
    command = ("compare", tmp_path / "photos", "--methods", "erm,ren,odd", "--seeds", 2)
    command += ("--epochs", 2, "--model", "resnet8", "--image-size", 8, "--out", out)
    code, told, notes = oddly(*command)
    assert code == 0, notes
    caveat = (
        "test accuracy is measured on the given labels of 4 held-out images, including wrong ones"
    )
    assert notes.splitlines()[0].strip() == caveat and f"\n{caveat}\n" in told
    header = told.splitlines()[0]
    assert "test accuracy" in header and "removed" in header and "precision" not in header
    assert "\nren: ren needs trusted labels, but " in told  # a row of dashes says nothing
    result = json.loads((out / "compare.json").read_text())
    assert result["caveat"] == caveat and result["plan"]["options"]["hold_out"] == 0.1
    erm, _, odd = result["rows"]
    assert len(erm["test_accuracy"]["values"]) == 2 == len(odd["removed_fraction"]["values"])
    ids = {tuple(Run(out / name).verdicts["id"]) for name in ("erm-0", "erm-1", "odd-0", "odd-1")}
    assert len(ids) == 1 and len(ids.pop()) == 36  # the same examples in every run
    assert oddly(*command)[0] == 0  # all is there already


def is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_two_at_a_time_stopped_and_gone_on_with(oddly: Command, tmp_path: Path) -> None:
    """Ctrl-C answers at once, leaves no process behind, and the figures are those of one job."""
    arguments = ("compare", "synthetic", "--methods", "erm,elr", "--seeds", 2, "--noise", 0.3)
    arguments += ("--epochs", 30, "--device", "cpu", "--json")  # long enough to be stopped
    process = start(*arguments, "--out", tmp_path / "two", "--jobs", 2, start_new_session=True)
    assert process.stderr
    assert "(1 of 4)" in process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in complaint
    assert "run the same command again to continue" in complaint
    until = time.monotonic() + 30
    while is_there(process.pid):
        assert time.monotonic() < until, "a process is left behind"
        time.sleep(0.05)
    begun = json.loads((tmp_path / "two/compare.json").read_text())
    assert begun["missing"] > 0 and begun["at_once"] == 2
    ends = [oddly(*arguments, "--out", tmp_path / name) for name in ("two", "one")]
    assert [code for code, _, _ in ends] == [0, 0]
    two, one = (json.loads(told)["rows"] for _, told, _ in ends)
    for first, second in zip(two, one, strict=True):
        assert first["test_accuracy"] == second["test_accuracy"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("synthetic", "--methods", "erm,ood"), "unknown method 'ood'; did you mean 'odd'?"),
        (("synthetic", "--methods", ","), "needs at least one method"),
        (("digitz",), "unknown dataset 'digitz'; did you mean 'digits'?"),
        (("synthetic", "--seeds", "0"), "--seeds must be at least 1"),
        (("synthetic", "--set", "q=1"), "--set expects METHOD.NAME=VALUE, got 'q=1'"),
        (("synthetic", "--methods", "gce", "--set", "gce.qq=1"), "unknown setting of gce 'qq'"),
        (("synthetic", "--methods", "gce", "--set", "gce.q=7"), "gce's q must be above 0"),
        (("synthetic", "--noise", "2"), "noise must be within 0..1"),
        (("synthetic", "--methods", "erm,ren", "--trusted", "none.csv"), "does not exist"),
        (
            ("synthetic", "--methods", "erm,ren", "--trusted", "99"),
            "must be within 2..12 for synthetic, a tenth of its 120",
        ),
    ],
)
def test_bad_input_is_one_line(
    arguments: tuple[str, ...],
    message: str,
    oddly: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, told, complaint = oddly("compare", *arguments)
    assert code == 2 and not told and complaint.count("\n") == 1 and message in complaint
    assert not list(tmp_path.iterdir())


def test_a_full_disk_says_how_to_go_on(
    oddly: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Run:
        raise OSError(errno.ENOSPC, "No space left on device")

    command = ("compare", "synthetic", "--methods", "erm", "--seeds", 1, "--epochs", 1)
    with monkeypatch.context() as patch:
        patch.setattr(cell, "run_config", full)
        code, _, complaint = oddly(*command, "--out", tmp_path)
    told = f"No space left on device: {tmp_path}; run the same command again to continue"
    assert code == 1 and complaint == f"oddly: {told}\n"
    assert oddly(*command, "--out", tmp_path)[0] == 0
