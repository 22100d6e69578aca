"""`oddly clean` as a user meets it."""

from __future__ import annotations

import json
import shlex
import signal
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from oddly.clean.export import EXPORTS
from oddly.records import Run
from tests.clean.conftest import write_pictures
from tests.command import Command, start

QUICK = ("--model", "resnet8", "--epochs", 3, "--prune-after", 2, "--percentile", 60)


@pytest.fixture
def oddly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def test_the_table_the_findings_and_the_next_step(oddly: Command, tmp_path: Path) -> None:
    write_pictures(tmp_path / "photos", 12)
    out = tmp_path / "run"
    code, told, progress = oddly(
        "clean", tmp_path / "photos", "--out", out, *QUICK, "--top", 3, "--export", "ids"
    )
    assert code == 0
    for words in ("resnet8, from scratch", "your choice", "3, with 12 images each", "balanced"):
        assert words in progress
    assert "of 36 images look mislabelled" in told and "3 most suspicious:" in told
    assert f"oddly review {out}" in told.replace("\n", " ") and (out / "report.html").exists()
    assert len((out / "suspects.txt").read_text().splitlines()) == 3
    code, told, _ = oddly("clean", "--resume", "--out", out, "--json")
    assert code == 0 and json.loads(told)["images"] == 36


def test_three_images_are_too_few_for_an_estimate(oddly: Command, tmp_path: Path) -> None:
    write_pictures(tmp_path / "photos", 1, side=20)
    out = tmp_path / "run"
    code, told, _ = oddly("clean", tmp_path / "photos", "--out", out)
    assert code == 0 and "wrong labels: too few images" in told
    assert "0 of 3 images look mislabelled" in told
    assert f"oddly review {out} --top 50" in " ".join(told.split())
    code, told, _ = oddly("clean", "--resume", "--out", out, "--json")
    found = json.loads(told)
    assert code == 0 and found["estimated_noise"] is None
    assert found["doubt"] is None and found["contrast"] is None  # of one planted label
    assert "too few images" in (out / "report.html").read_text()


def test_features_that_say_nothing_of_the_labels_are_to_be_fine_tuned(
    oddly: Command, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(150):
            pixels = rng.integers(0, 256, (80, 80, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.png")
    out = tmp_path / "run"
    code, told, _ = oddly("clean", tmp_path / "photos", "--out", out, "--epochs", 5, "--seed", 1)
    assert code == 0 and "this verdict is unreliable" in told
    (line,) = [line for line in told.splitlines() if line.startswith("try")]
    again = shlex.split(line, comments=True)[1:]
    assert again == shlex.split(
        f"oddly clean {tmp_path / 'photos'} --out {out}-2 --seed 1 --fine-tune"
    )


def test_a_network_that_hardly_learns_is_not_to_be_trusted(oddly: Command, tmp_path: Path) -> None:
    """Labels that nothing in the pictures explains, one epoch: planted ones look like the rest."""
    rng = np.random.default_rng(0)
    for name in ("a", "b", "c"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(110):
            pixels = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.png")
    command = ("clean", tmp_path / "photos", "--out", tmp_path / "run", "--model", "resnet8")
    code, told, progress = oddly(*command, "--epochs", 2, "--learning-rate", 0.001)
    assert code == 0 and progress.count("the network has hardly learnt") == 1
    headline, sentence = told.splitlines()[:2]
    assert headline.endswith("but this verdict is unreliable:") and sentence in progress
    assert sentence.startswith("the network has hardly learnt")
    assert 'class="doubt"' in (tmp_path / "run" / "report.html").read_text()
    code, told, _ = oddly("clean", "--resume", "--out", tmp_path / "run", "--json")
    found = json.loads(told)
    assert found["contrast"] < 6.5 and found["doubt"] == sentence
    again = ("clean", "--resume", "--out", tmp_path / "run", "--export", "ids")
    code, told, progress = oddly(*again, "--copy-to", tmp_path / "copy")
    assert sentence in told.splitlines()
    assert progress.replace("\n", " ").count("(from an unreliable verdict)") == 2


def test_mistakes_are_told_in_one_line(oddly: Command, tmp_path: Path) -> None:
    write_pictures(tmp_path / "photos", 4)
    inside = tmp_path / "photos" / "copy"
    for arguments, words in (
        ((tmp_path / "gone",), "no such file or folder"),
        ((), "nothing to clean"),
        ((tmp_path / "photos", "--export", "xml"), "unknown export 'xml'"),
        ((tmp_path / "photos", "--copy-to", inside), "is inside the dataset"),
        (("--resume",), "--resume needs --out"),
    ):
        code, _, complaint = oddly("clean", *arguments, *QUICK[:4])
        assert code == 2 and words in complaint.splitlines()[-1], complaint
    assert not inside.exists()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--percentile", 200, "percentile must be within 0..100, got 200"),
        ("--prune-after", 9_999, "prune_after = 9999 is beyond"),
        ("--labels", "no.csv", "labels: no.csv does not exist"),
        ("--backbone", "nope", "unknown timm model 'nope'"),
        ("--model", "resnet81", "unknown model 'resnet81'"),
    ],
)
def test_mistakes_are_told_before_an_image_is_read_and_leave_no_folder(
    oddly: Command, tmp_path: Path, option: str, value: object, words: str
) -> None:
    write_pictures(tmp_path / "photos", 4)
    code, _, complaint = oddly("clean", tmp_path / "photos", option, value, "--out", tmp_path / "r")
    assert code == 2 and complaint.count("\n") == 1 and words in complaint
    assert not (tmp_path / "r").exists()


def test_ctrl_c_says_how_to_go_on_and_the_run_goes_on(oddly: Command, tmp_path: Path) -> None:
    write_pictures(tmp_path / "photos", 60)
    out = tmp_path / "run"
    process = start(
        "clean", tmp_path / "photos", "--out", out, "--model", "resnet8", "--epochs", 2_000,
    )  # fmt: skip
    metrics, patience = out / "metrics.jsonl", time.monotonic() + 120
    while not (metrics.exists() and metrics.stat().st_size):
        assert time.monotonic() < patience and process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"start over with: oddly clean --resume --out {out}" in complaint
    assert "Traceback" not in complaint


def test_why_there_is_no_estimate() -> None:
    from oddly.clean.findings import Findings
    from oddly.cli.findings import tell_share

    few = Findings(100, 0, 0, 0, None, None, None, (), (), (), 0, 0, 0, 0)
    assert tell_share(few).endswith("of wrong labels: too few images")
    assert tell_share(replace(few, images=1_000)).endswith(
        "of wrong labels: no labels were planted"
    )


def test_pillow_says_nothing_of_large_pictures_itself(
    oddly: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recwarn: pytest.WarningsRecorder,
) -> None:
    """One above Pillow's limit is read, one above twice that limit is unreadable."""
    write_pictures(tmp_path / "photos", 12)  # 12 x 12 pixels
    Image.new("RGB", (30, 30)).save(tmp_path / "photos/red/bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    warnings.simplefilter("always")
    out = tmp_path / "run"
    code, told, progress = oddly(
        "clean", tmp_path / "photos", "--out", out, "--skip-unreadable", *QUICK
    )
    assert code == 0 and "of 36 images" in told and not progress.count("Warning")
    assert not [each for each in recwarn if each.category is Image.DecompressionBombWarning]
    assert (out / "unreadable.csv").read_text() == "id,reason\nred/bomb.png,far too many pixels\n"


def test_findings_are_printed_though_an_export_fails(
    oddly: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(run: Run, suspects: object) -> Path:
        raise OSError(28, "No space left on device", "issues.csv")

    monkeypatch.setitem(EXPORTS, "cleanlab", fail)
    write_pictures(tmp_path / "photos", 12)
    command = ("clean", tmp_path / "photos", "--out", tmp_path / "run", *QUICK)
    code, told, progress = oddly(*command, "--export", "cleanlab", "--export", "ids")
    assert code == 2 and "of 36 images look mislabelled" in told and "oddly review" in told
    assert "wrote " in progress and (tmp_path / "run/suspects.txt").exists()
    last = progress.splitlines()[-1]
    assert last.startswith(
        "oddly: could not write --export cleanlab: no space left on device: issues.csv ("
    )


@pytest.mark.parametrize("json", [False, True])
def test_a_closed_pipe_costs_no_copy_and_no_export(tmp_path: Path, json: bool) -> None:
    write_pictures(tmp_path / "photos", 12)
    out, copy = tmp_path / "run", tmp_path / "copy"
    wanted = ("--copy-to", copy, "--export", "ids", *["--json"] * json)
    process = start("clean", tmp_path / "photos", "--out", out, *QUICK, *wanted)
    assert process.stdout and process.stderr
    process.stdout.close()  # as by `| head -0`
    progress = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) and "Traceback" not in progress
    assert progress.count("wrote ") == 2
    assert (out / "suspects.txt").exists() and list(copy.rglob("*.png"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no /dev/full")
def test_findings_that_cannot_be_printed_blame_no_run_folder(tmp_path: Path) -> None:
    write_pictures(tmp_path / "photos", 12)
    out, copy = tmp_path / "run", tmp_path / "copy"
    with open("/dev/full", "w") as full:
        process = start(
            *("clean", tmp_path / "photos", "--out", out, *QUICK, "--copy-to", copy), stdout=full
        )
        _, progress = process.communicate(timeout=60)
    assert process.returncode and list(copy.rglob("*.png"))
    assert "oddly: No space left on device\n" in progress
