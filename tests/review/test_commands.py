"""The commands as a user types them: bad input is one clear line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from oddly.records import Run, RunWriter
from oddly.review.session import Session
from tests.clean.conftest import write_pictures
from tests.command import Command
from tests.review.conftest import write_run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def oddly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def refused(oddly: Command, *arguments: object) -> str:
    """The one line that is told."""
    code, out, err = oddly(*arguments)
    assert code == 2 and out == "" and len(err.splitlines()) == 1 and err.startswith("oddly: ")
    return err.removeprefix("oddly: ").rstrip()


@pytest.mark.parametrize("command", ["review", "apply"])
def test_folders_that_are_no_runs(oddly: Command, tmp_path: Path, run: Run, command: str) -> None:
    assert "no such folder" in refused(oddly, command, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "not a run folder" in refused(oddly, command, tmp_path / "empty")
    config = run.path / "config.json"
    config.write_text(json.dumps({**run.config, "format": 7}))
    assert (
        "run format 7, but this version of oddly reads 1; use the version that wrote it"
        in refused(oddly, command, run.path)
    )


def test_runs_that_cannot_be_reviewed(oddly: Command, tmp_path: Path, run: Run) -> None:
    (run.path / "decisions.sqlite").write_bytes(b"x" * 5000)
    assert "is damaged" in refused(oddly, "review", run.path)
    assert "is damaged" in refused(oddly, "apply", run.path)
    RunWriter.create(tmp_path / "young", {"method": "odd"}, {})
    assert "not finished; continue it with the same command" in refused(
        oddly, "review", tmp_path / "young"
    )
    moved = write_run(tmp_path / "moved", ["a.png"], tmp_path / "gone")
    assert "pictures of this run not found" in refused(oddly, "review", moved.path)


def test_nothing_is_written_where_review_is_refused(oddly: Command, tmp_path: Path) -> None:
    run = write_run(tmp_path / "moved", ["a.png"], tmp_path / "gone")
    before = sorted(file.name for file in run.path.iterdir())
    refused(oddly, "review", run.path)
    assert sorted(file.name for file in run.path.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_run_folder(oddly: Command, tmp_path: Path, run: Run) -> None:
    run.path.chmod(0o555)
    try:
        told = refused(oddly, "review", run.path)
    finally:
        run.path.chmod(0o755)
    assert "--decisions FILE" in told


def test_apply_tells_what_was_decided_and_how_to_use_it(
    oddly: Command, run: Run, photos: Path, tmp_path: Path
) -> None:
    session = Session(run)
    session.decide(0, "remove", None, 0)
    session.decide(1, "suggestion", None, 0)
    session.decisions.close()
    (photos / "dog" / "4.png").unlink()
    code, out, err = oddly("apply", run.path, "--copy-to", tmp_path / "clean")
    table = run.path / "labels.csv"
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "0 kept, 1 changed, 1 removed",
        f"labels  {table}",
        f"use     oddly train {photos} --labels {table}",
        "4 of 6 suspects are undecided: their labels stay as they are",
        f"copy    {tmp_path / 'clean'}: 7 files",
        "1 file was not copied: dog/4.png (file not found)",
    ]


def test_rows_of_a_dataset_become_a_table_of_ids_and_labels(oddly: Command, tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "dataset_info.json").touch()
    run = write_run(tmp_path / "run", [f"train/{i}" for i in range(4)], tmp_path / "hub")
    session = Session(run)
    session.decide(0, "remove", None, 0)
    session.decide(1, "suggestion", None, 0)
    session.decisions.close()
    code, out, _ = oddly("apply", run.path, "--copy-to", tmp_path / "copy")
    table = tmp_path / "copy/cleaned.csv"
    told = f"copy    {table}, a table of 3 ids and labels: a Hugging Face dataset has rows"
    assert code == 0 and out.splitlines()[-1].startswith(told)
    assert table.read_text() == "id,label\ntrain/1,emu\ntrain/2,emu\ntrain/3,cat\n"
    assert "not an empty folder" in oddly("apply", run.path, "--copy-to", tmp_path / "copy")[2]
    assert oddly("apply", run.path, "--copy-to", tmp_path / "named.csv")[0] == 0
    assert (tmp_path / "named.csv").read_text() == table.read_text()


def test_apply_says_nothing_of_suspects_once_all_are_decided(
    oddly: Command, photos: Path, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run", ["cat/0.png", "dog/1.png"], photos, keep=[False, True])
    session = Session(run)
    session.decide(0, "keep", None, 0)
    session.decisions.close()
    assert "undecided" not in oddly("apply", run.path)[1]


def test_a_table_of_decisions_needs_no_torch(run: Run) -> None:
    session = Session(run)
    session.decide(0, "keep", None, 0)
    session.decisions.close()
    program = "import sys; from oddly.cli import main; main()"
    program = f"import sys\ntry:\n    {program}\nfinally:\n    print('torch' in sys.modules)"
    command = [sys.executable, "-c", program, "apply", str(run.path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_apply_warns_of_names_that_a_spreadsheet_runs(
    oddly: Command, photos: Path, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run", ["=cat/0.png"], photos)
    session = Session(run)
    session.decide(0, "remove", None, 0)
    session.decisions.close()
    told = "1 name starts with = + - or @, for example =cat/0.png"
    assert oddly("apply", run.path)[1].splitlines()[-1].startswith(told)
    assert told not in oddly("apply", run.path, "--out", tmp_path / "t.parquet")[1]


def used(oddly: Command, run: Run) -> str:
    """The command that apply tells to use."""
    session = Session(run)
    session.decide(0, "keep", None, 0)
    session.decisions.close()
    code, out, _ = oddly("apply", run.path)
    assert code == 0
    return out.splitlines()[2].removeprefix("use").strip()


def test_the_next_training_is_like_the_one_before(
    oddly: Command, photos: Path, tmp_path: Path
) -> None:
    made_with = dict(skip_unreadable=True, epochs=4, init_seed=0, order_seed=3, nesterov=False)
    defaults = dict(noise=0.0, device="auto", data_dir=None, settings={"percentile": 8.0})
    run = write_run(tmp_path / "run", ["cat/0.png"], photos, **made_with, **defaults)
    told = used(oddly, run).removeprefix(f"oddly train {photos} --labels {run.path}/labels.csv ")
    assert sorted(told.split(" --")) == [
        *("--order-seed 3", "epochs 4", "no-nesterov", "percentile 8.0", "skip-unreadable")
    ]


def test_what_has_no_option_of_its_own_is_told_too(
    oddly: Command, photos: Path, tmp_path: Path
) -> None:
    rule = {"counterfactual": "weights", "statistic": "last", "percentile": 10.0, "rounds": 1}
    made_with = {"weight_decay": 0.0, "momentum": 0.0, "noise_seed": 0}
    settings = {**rule, "draws": 20_000, "head": None}
    run = write_run(tmp_path / "run", ["cat/0.png"], photos, settings=settings, **made_with)
    told = used(oddly, run).removeprefix(f"oddly train {photos} --labels {run.path}/labels.csv ")
    assert sorted(told.split(" --")) == [
        *("--weight-decay 0.0", "momentum 0.0", "percentile 10.0", "rounds 1"),
        *("set counterfactual=weights", "set statistic=last"),
    ]


def test_the_command_names_the_images_from_wherever_it_is_asked(
    oddly: Command, tmp_path: Path, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(photos.parent)  # begun there, with the folder's name alone
    run = write_run(tmp_path / "run", ["cat/0.png"], photos.name)
    assert used(oddly, run).startswith(f"oddly train {photos.name} --labels ")
    digits = write_run(tmp_path / "digits-run", ["0"], "digits")
    for other in (f"elsewhere/{photos.name}", "digits"):  # which are not meant
        (tmp_path / other).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert used(oddly, run).startswith(f"oddly train {photos} --labels ")
    assert used(oddly, digits).startswith("oddly train digits --labels ")


def test_the_next_cleaning_can_be_pasted(
    oddly: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run in the default folder, which went on without an image that cannot be read."""
    monkeypatch.chdir(tmp_path)
    write_pictures(tmp_path / "photos", 12)
    (tmp_path / "photos" / "red" / "torn.png").write_bytes(b"junk")
    quick = ("--model", "resnet8", "--epochs", 3, "--prune-after", 2, "--percentile", 60)
    assert oddly("clean", "photos", *quick)[0] == 2
    out = "runs/photos-clean"
    assert oddly("clean", "--resume", "--skip-unreadable", "--out", out)[0] == 0
    Path(out, "unreadable.csv").write_bytes("id,reason\nré.png,torn\n".encode("latin-1"))
    session = Session(Run(Path(out)), top=1)
    session.decide(0, "keep", None, 0)
    session.decisions.close()
    for number in (2, 3):
        told = oddly("apply", out)[1].splitlines()[2].split()
        assert told[:2] == ["use", "oddly"] and f"{out}-{number}" in told
        code, _, complaint = oddly(*told[2:])
        assert code == 0, complaint
    assert Run(Path(f"{out}-2")).config["epochs"] == 3
    session = Session(Run(Path(f"{out}-2")), top=1)
    session.decide(0, "keep", None, 0)
    session.decisions.close()
    assert f"--out {out}-4 " in oddly("apply", f"{out}-2")[1]
