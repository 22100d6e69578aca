"""Bad input gets one clear line, a non-zero exit and no half-written run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from oddly.engine.checkpoint import load_checkpoint
from oddly.models.backbone import PACKAGED
from oddly.records import Run
from tests.command import QUICK, ROOT, Command, start


@pytest.fixture
def oddly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


BAD = [
    (("train",), "nothing to train on"),
    (("train", "digitz"), "unknown dataset 'digitz'; did you mean 'digits'?"),
    (("train", "digits", "--method", "od"), "unknown method 'od'; did you mean 'odd'?"),
    (("train", "digits", "--model", "resnet81"), "unknown model 'resnet81'; did you mean"),
    (("train", "cifar10", "--data-dir", "{}"), "is missing; use --download"),
    (("train", "{}/empty"), "contains no images"),
    (("train", "{}/nothing"), "no such file or folder"),
    (("train", "{}/nothing.csv"), "no such file or folder"),
    (("train", "digits", "--labels", "{}/nothing.csv"), "does not exist"),
    (("train", "synthetic", "--labels", "{}/zebra.csv"), "'zebra' of train/00001"),
    (("train", "synthetic", "--labels", "{}/outside.csv"), "'99' of train/00001"),
    (("train", "digits", "--noise", "1.5"), "noise must be within 0..1"),
    (("train", "digits", "--noise-kind", "unifrom"), "did you mean 'uniform'?"),
    (("train", "digits", "--percentile", "101"), "percentile must be within 0..100"),
    (("train", "digits", "--percentile", "nan"), "percentile must be within 0..100"),
    (("train", "digits", "--epochs", "5", "--prune-after", "6"), "beyond the 5 epochs"),
    (("train", "digits", "--prune-after", "0"), "at least 1 (finished epochs), got 0"),
    (("train", "digits", "--epochs", "0"), "epochs must be"),
    (("train", "digits", "--set", "percentil=3"), "did you mean 'percentile'?"),
    (("train", "digits", "--set", "percentile=x"), "must be float"),
    (("train", "digits", "--set", "foo=1"), "unknown setting of odd 'foo'; known: counterfactual,"),
    (("train", "digits", "--method", "erm", "--set", "foo=1"), "of erm 'foo'; known: none"),
    (("train", "digits", "--set", "percentile"), "--set expects NAME=VALUE"),
    (("train", "digits", "--preset", "papr"), "did you mean 'paper'?"),
    (("train", "digits", "--seed", "-1"), "oddly: seed must be within"),
    (("train", "digits", "--warmup", "50"), "warmup must be within 0..40"),
    (("train", "digits", "--cutout", "9"), "cutout 9 is larger than the images, 8 x 8 pixels"),
    (("train", "digits", "--cutout", "-1"), "cutout must be within"),
    (("train", "digits", "--backbone", "test_vit", "--reflect"), "reflect needs images"),
    (
        ("train", "digits", "--backbone", "test_vit", "--method", "mixup", "--set", "cut=true"),
        "cut needs images",
    ),
    (("train", "digits", "--backbone", "test_vit", "--cutout", "4"), "cutout needs images"),
    (("train", "digits", "--weights", "packaged"), f"needs a backbone: add --backbone {PACKAGED}"),
    (("train", "digits", "--mirror-test"), "flip is off for digits"),
    (("train", "--resume"), "--resume needs --out"),
    (("report", "{}/empty"), "not a run folder"),
    (("report", "{}/nothing"), "no such folder"),
    (("report", "{}/empty", "--images", "{}/nothing"), "--images expects the folder of the images"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: str(value)[:60])
def test_bad_input_is_one_line_and_leaves_nothing(
    arguments: tuple[str, ...],
    message: str,
    oddly: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "zebra.csv").write_text("id,label\ntrain/00001,zebra\n")
    (tmp_path / "outside.csv").write_text("id,label\ntrain/00001,99\n")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    code, told, complaint = oddly(*(argument.format(tmp_path) for argument in arguments))
    assert code == 2 and not told
    assert complaint.startswith("oddly: ") and complaint.count("\n") == 1 and message in complaint
    assert sorted(tmp_path.rglob("*")) == before


def test_a_corrupt_cifar_file(oddly: Command, tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-py").mkdir()
    (tmp_path / "cifar-10-batches-py/batches.meta").write_bytes(b"not it")
    code, _, complaint = oddly("train", "cifar10", "--data-dir", tmp_path, "--out", tmp_path / "o")
    assert code == 2 and "batches.meta is corrupt" in complaint and not (tmp_path / "o").exists()


@pytest.mark.parametrize("place", ["file", "file/below", "full"])
def test_a_place_that_cannot_be_written(place: str, oddly: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    code, _, complaint = oddly("train", "synthetic", "--epochs", 1, "--out", tmp_path / place)
    assert code in (1, 2) and complaint.count("\n") == 1 and str(tmp_path / place) in complaint
    assert (tmp_path / "file").read_text() == "mine"
    assert [file.name for file in (tmp_path / "full").iterdir()] == ["mine.txt"]


def test_a_loss_that_is_no_number(oddly: Command, tmp_path: Path) -> None:
    command = ("train", "synthetic", "--learning-rate", 1e30, "--out", tmp_path / "run")
    code, told, complaint = oddly(*command)
    last = complaint.splitlines()[-1]
    assert code == 2 and not told
    assert re.search(r"loss became (nan|inf) in epoch 1, step \d of 4; try a lower", last)
    assert not Run(tmp_path / "run").is_done


def test_resume_refuses_another_run(oddly: Command, tmp_path: Path) -> None:
    command = ("train", "synthetic", "--method", "erm", "--epochs", 1, "--out", tmp_path)
    assert oddly(*command)[0] == 0
    code, _, complaint = oddly("train", "digits", "--resume", "--out", tmp_path)
    assert code == 2 and "started with data = synthetic, not digits" in complaint
    code, _, complaint = oddly("train", "--resume", "--out", tmp_path, "--epochs", 5)
    assert code == 2 and "started with epochs = 1, not 5" in complaint
    code, told, _ = oddly("train", "--resume", "--out", tmp_path)  # finished: only shown
    assert code == 0 and "erm" in told


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A real one would need a mount: the kernel refuses files over 64 kB just as finally."""
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))

    out = tmp_path / "run"
    process = start("train", "synthetic", *QUICK, "--out", out, preexec_fn=limit)
    _, complaint = process.communicate(timeout=120)
    last = complaint.splitlines()[-1]
    assert process.returncode == 1 and "Traceback" not in complaint
    assert last.startswith("oddly: File too large") and f"--resume --out {out}" in last
    left = {file.name for file in out.iterdir()}
    assert left == {"config.json", "environment.json", "metrics.jsonl"}  # no torn checkpoint
    process = start("train", "--resume", "--out", out, "--json")
    told, complaint = process.communicate(timeout=120)
    assert process.returncode == 0, complaint
    assert json.loads(told) == Run(out).summary


def interrupt(process: subprocess.Popen[str], folder: Path, rows: int) -> str:
    """Ctrl-C once so many epochs are done; returns the last line that is said."""
    metrics, deadline = folder / "metrics.jsonl", time.monotonic() + 240
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < rows:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=240)
    assert process.returncode == 130 and "Traceback" not in complaint
    return str(complaint.splitlines()[-1])


def test_ctrl_c_while_torch_is_loaded(oddly: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 makes another error of what interrupts the making of a class."""

    class Interrupts:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    def load(*_: object) -> None:
        type("Field", (), {"field": Interrupts()})

    monkeypatch.setattr("oddly.demo.run_demo", load)
    assert oddly("demo")[::2] in (
        (130, "oddly: interrupted\n"),
        (130, ""),
    )  # later Pythons: as ever


def test_ctrl_c_before_the_first_checkpoint_promises_nothing(tmp_path: Path) -> None:
    command = ("train", "synthetic", "--method", "erm", "--epochs", 10_000, "--out", tmp_path)
    last = interrupt(start(*command), tmp_path, rows=3)
    assert not (tmp_path / "checkpoint.pt").exists()
    assert re.fullmatch(
        r"oddly: interrupted (in|after) epoch \d+; no epoch is saved yet, so start over"
        rf" with: oddly train --resume --out {tmp_path}",
        last,
    )


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "a broken one"
    command = ("train", "synthetic", "--epochs", 80, "--prune-after", 1, "--percentile", 60)
    process = start(*command, "--noise", 0.4, "--out", broken)
    last = interrupt(process, broken, rows=2)
    stopped = r"oddly: interrupted (in|after) epoch \d+; continue after epoch (\d+) with: (.*)"
    found = re.fullmatch(stopped, last)
    assert found and found[3] == f"oddly train --resume --out '{broken}'"
    saved = load_checkpoint(broken)
    assert saved and saved["finished"] == int(found[2]) and not Run(broken).is_done
    again = start("train", "--resume", "--out", broken)
    straight = start(*command, "--noise", 0.4, "--out", whole)
    for process in (again, straight):
        process.communicate(timeout=240)
        assert process.returncode == 0
    pd.testing.assert_frame_equal(Run(whole).verdicts, Run(broken).verdicts, check_exact=True)


@pytest.mark.parametrize("command", ["clean", "train"])
def test_ctrl_c_in_a_resumed_run_that_still_reads_its_images(
    oddly: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    room = {"clean": "oddly.clean.api", "train": "oddly.engine.api"}[command]
    monkeypatch.setattr(import_module(room), command, stop)
    again = f"oddly {command} --resume --out {tmp_path}"
    code, _, told = oddly(command, "--resume", "--out", tmp_path)
    assert (code, told) == (130, f"oddly: interrupted; continue with: {again}\n")


def test_unreadable_images(oddly: Command, tmp_path: Path) -> None:
    for k in range(2):
        for i in range(6):
            file = tmp_path / "data" / f"class{k}" / f"{i}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (120 * k, 10 * i, 0)).save(file)
    (tmp_path / "data/class0/1.png").write_bytes(b"")
    (tmp_path / "data/class1/2.png").write_bytes(b"not a picture")
    out = tmp_path / "run"
    command = ("train", tmp_path / "data", "--method", "erm", "--model", "resnet8", "--epochs", 1)
    code, _, complaint = oddly(*command, "--out", out)
    assert code == 2 and complaint.count("\n") == 1 and not out.exists()
    assert "class0/1.png (empty file), class1/2.png (not an image)" in complaint
    code, _, notes = oddly(*command, "--out", out, "--skip-unreadable")
    assert code == 0 and "2 of 12 images cannot be read" in notes and len(Run(out).verdicts) == 10


def test_a_terminal_that_lacks_signs(
    oddly: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "鸟"
    assert oddly("train", "synthetic", "--method", "erm", "--epochs", 1, "--out", run)[0] == 0
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    told, complaint = start("report", run).communicate(timeout=60)
    assert r"\u9e1f/report.html" in told and not complaint


@pytest.mark.parametrize("source", ["nowhere", "./nowhere", "nowhere.csv"])
def test_what_is_not_there_is_told_at_once(source: str, tmp_path: Path) -> None:
    """Without torch, which takes seconds to load."""
    code = (
        "import sys; from oddly import cli; sys.argv = ['oddly', *sys.argv[1:]]\n"
        "try: cli.main()\n"
        "finally: print('torch' in sys.modules)"
    )
    for command in ("clean",) if source == "nowhere" else ("clean", "train"):
        ended = subprocess.run(
            [sys.executable, "-c", code, command, source],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert (ended.returncode, ended.stdout) == (2, "False\n")
        assert ended.stderr == f"oddly: {source}: no such file or folder\n"
