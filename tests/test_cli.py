"""The command line as a user meets it: options, files, output."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from PIL import Image

from oddly import cli
from oddly.data import NOISES
from oddly.engine.config import RunConfig
from oddly.methods import METHODS
from oddly.records import Run
from oddly.review.session import Session
from tests.command import QUICK, ROOT, Command


@pytest.fixture
def oddly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image folder with train/ and test/, and a table that lists the same files."""
    root = tmp_path_factory.mktemp("photos")
    random = np.random.RandomState(0)
    rows = ["path,label,split"]
    for split, number in (("train", 16), ("test", 4)):
        for k, name in enumerate(("cat", "dog")):
            folder = root / split / name
            folder.mkdir(parents=True)
            for i in range(number):
                pixels = random.randint(0, 80, (20, 20, 3)) + 120 * k
                Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
                rows.append(f"{split}/{name}/{i}.png,{name},{split}")
    (root / "list.csv").write_text("\n".join(rows) + "\n")
    return root


def test_the_run_folder_and_the_table(oddly: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, told, progress = oddly("train", "digits", *QUICK, "--noise", 0.4, "--out", out)
    assert code == 0 and "epoch 3/3" in progress
    for words in ("test accuracy", "removed", "precision", "recall", "denoising seconds"):
        assert words in told
    assert str(out / "report.html") in told.replace("\n", "")
    names = {"config.json", "environment.json", "metrics.jsonl", "verdicts.parquet"}
    names |= {"truth.parquet", "counterfactual.json", "model.safetensors", "summary.json"}
    names |= {"thumbnails.parquet"}
    assert {file.name for file in out.iterdir()} == names | {"done", "report.html"}
    run = Run(out)
    assert list(run.verdicts.columns) == [
        *("index", "id", "given_label", "given_name", "loss", "score"),
        *("counterfactual_percentile", "threshold", "keep"),
        *("suggested_label", "suggested_name", "suggested_confidence"),
    ]
    assert {
        *("method", "test_accuracy", "removed_fraction", "threshold", "prune_after"),
        *("percentile", "seconds", "denoise_seconds"),
        *("precision", "recall", "f1", "average_precision"),
    } <= run.summary.keys()
    assert {
        *("lr", "train_loss", "test_accuracy", "kept", "seconds", "images_per_second"),
        "denoise_seconds",
    } <= run.metrics[0].keys()
    assert {"histogram", "percentiles"} <= (run.counterfactual or {}).keys()
    assert run.environment["packages"]["torch"]


def test_what_is_not_to_be_trusted_is_said_under_the_table(oddly: Command, tmp_path: Path) -> None:
    command = ("--device", "cpu", "--out", tmp_path)
    _, told, progress = oddly("train", "digits", "--noise", 0.4, "--epochs", 2, *command)
    assert told.count("The network has hardly learnt") == 1 == progress.count("hardly learnt")
    _, again, _ = oddly("train", "--resume", "--out", tmp_path)  # which has nothing left to do
    assert "The network has hardly learnt" in again
    command = ("--device", "cpu", "--out", tmp_path / "gce", "--method", "gce")
    _, told, progress = oddly("train", "synthetic", "--epochs", 1, "--noise", 0.4, *command)
    assert told.count("More than half of the examples are removed") == 1
    assert progress.count("more than half of the examples are removed") == 1


def test_a_doubted_verdict_on_files_names_the_command_that_may_do_better(
    oddly: Command, tmp_path: Path
) -> None:
    """Random pictures: nothing can be learnt; enough of them for sentinels, which notice."""
    random = np.random.RandomState(0)
    for name in ("cat", "my dog"):
        (tmp_path / "my photos" / name).mkdir(parents=True)
        for i in range(160):
            pixels = random.randint(0, 255, (8, 8, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "my photos" / name / f"{i}.png")
    photos, out = tmp_path / "my photos", tmp_path / "my run"
    quick = ("--epochs", 2, "--prune-after", 1, "--model", "resnet8", "--image-size", 8)
    code, told, complaint = oddly("train", photos, *quick, "--out", out)
    assert code == 0, complaint
    assert "hardly learnt" in told and f"Try instead: oddly clean '{photos}' (for" in told
    assert "nothing is removed" in " ".join(told.split()) and "oddly review" not in told
    _, told, _ = oddly("train", photos, *quick, "--noise", 0.2, "--out", tmp_path / "noisy")
    assert "hardly learnt" in told and "Try instead" not in told  # its labels are not the files'


def test_where_to_look_is_said_where_there_is_something_to_see(
    oddly: Command, tmp_path: Path
) -> None:
    out = tmp_path / "my run"
    _, told, _ = oddly("train", "synthetic", *QUICK, "--noise", 0.4, "--out", out)
    assert told.splitlines()[-1] == f"next        oddly review '{out}'"
    assert len(Session(Run(out)).suspects)  # it can be looked at
    command = ("train", "synthetic", "--method", "erm", "--epochs", 1, "--out", tmp_path / "erm")
    assert "oddly review" not in oddly(*command)[1]


def test_json_is_all_that_stdout_gets(oddly: Command, tmp_path: Path) -> None:
    code, told, _ = oddly("train", "synthetic", *QUICK, "--json", "--out", tmp_path / "run")
    assert code == 0 and json.loads(told) == Run(tmp_path / "run").summary


def test_the_same_seed_gives_the_same_bytes(oddly: Command, tmp_path: Path) -> None:
    files = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        command = ("train", "synthetic", *QUICK, "--noise", 0.4, "--seed", seed)
        assert oddly(*command, "--out", tmp_path / name)[0] == 0
        files.append((tmp_path / name / "verdicts.parquet").read_bytes())
    assert files[0] == files[1] != files[2]


def test_set_and_the_options_of_odd(oddly: Command, tmp_path: Path) -> None:
    out = tmp_path / "odd"
    command = ("train", "synthetic", "--epochs", 2, "--set", "percentile=70", "--out", out)
    assert oddly(*command, "--set", "prune_after = 1")[0] == 0
    assert Run(out).summary["percentile"] == 70 and Run(out).summary["prune_after"] == 1


def test_what_only_odd_knows_is_noted_and_ignored(oddly: Command, tmp_path: Path) -> None:
    command = ("train", "synthetic", "--method", "erm", "--epochs", 1, "--out", tmp_path)
    code, _, notes = oddly(*command, "--percentile", 20, "--strict")
    assert code == 0 and Run(tmp_path).config["settings"] == {}
    assert "ignored setting 'percentile': erm has no such setting" in notes
    assert "ignored setting 'strict': erm has no such setting" in notes


def test_defaults_are_not_noted(oddly: Command, tmp_path: Path) -> None:
    command = ("train", "synthetic", "--method", "erm", "--epochs", 1, "--out", tmp_path)
    assert "ignored" not in oddly(*command)[2]


def test_the_papers_preset(oddly: Command, tmp_path: Path) -> None:
    command = ("train", "synthetic", "--epochs", 8, "--preset", "paper", "--out", tmp_path)
    assert oddly(*command)[0] == 0
    run = Run(tmp_path)
    assert run.config["settings"]["statistic"] == "last"
    assert (run.summary["percentile"], run.summary["prune_after"]) == (10, 3)  # 3/8 of 8


def test_overwrite_and_what_goes_without(oddly: Command, tmp_path: Path) -> None:
    command = ("train", "synthetic", "--method", "erm", "--epochs", 1, "--out", tmp_path)
    assert oddly(*command)[0] == 0
    code, told, complaint = oddly(*command, "--seed", 1)
    assert code == 2 and not told and "already contains a finished run" in complaint
    assert Run(tmp_path).config["order_seed"] == 0
    assert oddly(*command, "--seed", 1, "--overwrite")[0] == 0
    assert Run(tmp_path).config["order_seed"] == 1


def test_labels_replace_the_given_ones(oddly: Command, tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    table.write_text("id,label\ntrain/00000,class 2\ntrain/00001,0\n")
    command = ("train", "synthetic", "--method", "erm", "--epochs", 1, "--labels", table)
    assert oddly(*command, "--out", tmp_path / "run")[0] == 0
    assert Run(tmp_path / "run").verdicts["given_label"][:2].tolist() == [2, 0]


@pytest.mark.parametrize("source", ["", "list.csv"])
def test_image_files_end_to_end(source: str, oddly: Command, photos: Path, tmp_path: Path) -> None:
    command = ("train", photos / source, *QUICK, "--noise", 0.25, "--image-size", 16)
    code, _, complaint = oddly(*command, "--batch-size", 8, "--out", tmp_path)
    assert code == 0, complaint
    run = Run(tmp_path)
    assert run.verdicts["id"][0] == "train/cat/0.png" and len(run.verdicts) == 32
    assert set(run.verdicts["given_name"]) == {"cat", "dog"}
    assert run.truth is not None and run.truth["true_name"].tolist() == ["cat"] * 16 + ["dog"] * 16
    assert run.truth["mislabelled"].sum() == round(run.summary["noise"]["realised"] * 32)


def test_tensorboard(oddly: Command, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    command = ("train", "synthetic", "--epochs", 1, "--method", "erm", "--tensorboard")
    assert oddly(*command, "--out", tmp_path)[0] == 0
    assert len(list((tmp_path / "tensorboard").glob("events.*"))) == 1


def test_report(oddly: Command, tmp_path: Path) -> None:
    """Also in a folder whose name a terminal could take for a colour."""
    folder = tmp_path / "[red]"
    command = ("train", "synthetic", "--epochs", 1, "--method", "erm", "--out", folder / "run")
    code, told, _ = oddly(*command)
    assert code == 0 and f"run folder  {folder / 'run'}" in told
    code, told, _ = oddly("report", folder / "run", "--out", folder / "page.html")
    assert code == 0 and told.strip() == str(folder / "page.html")
    assert (folder / "page.html").read_text().startswith("<!")


@pytest.mark.parametrize("columns", [80, 120])
def test_help_reads_well(columns: int, oddly: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in ((), ("train",), ("demo",), ("report",), ("benchmark",)):
        code, told, _ = oddly(*command, "--help")
        assert code == 0 and all(len(line) <= columns for line in told.splitlines())
    _, told, _ = oddly("train", "--help")
    plain = " ".join(re.sub("[│╭╮╰╯─]", " ", told).split())
    for words in ("--noise-kind", "--prune-after", "(default: runs/DATA-METHOD-HASH)", "--resume"):
        assert words in plain
    _, detection, _ = oddly("benchmark", "detection", "--help")
    assert "runs/detection" in detection  # in square brackets it would be taken for a style
    for words in ("Prune after epoch E", "counterfactual (how random labels look at epoch E)"):
        assert words in plain
    for panel in ("Data", "Label noise", "Training", "Denoising", "Run"):
        assert f"─ {panel} ─" in told


def test_every_field_of_the_config_is_an_option_with_the_same_default() -> None:
    options = {
        name: parameter.default
        for name, parameter in inspect.signature(cli.train.train).parameters.items()
    }
    for field in fields(RunConfig):
        if field.name in ("data", "settings"):
            continue
        assert field.name in options, f"oddly train lacks --{field.name.replace('_', '-')}"
        if field.name not in ("noise_seed", "init_seed", "order_seed"):  # --seed sets them
            assert options[field.name] == field.default


def list_options(command: Any, name: str = "oddly") -> Iterator[tuple[str, str | None]]:
    """Every option of the command and of those below it, with its help."""
    for option in command.params:
        yield f"{name} {option.name}", option.help
    for below, each in getattr(command, "commands", {}).items():
        yield from list_options(each, f"{name} {below}")


def test_every_help_is_more_than_a_fragment() -> None:
    options = dict(list_options(typer.main.get_command(cli.app)))
    assert len(options) > 100
    for name, told in options.items():
        assert told is None or not told.startswith(("Of ", "Per ", "(")), name


def test_help_names_every_method_and_noise() -> None:
    for told, known in ((cli.train.METHODS, METHODS), (cli.train.NOISES, NOISES)):
        assert set(re.findall(r"\w+", told)) - {"or"} == set(known)


def test_the_version_costs_no_torch(oddly: Command) -> None:
    written = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert oddly("--version") == (0, f"oddly {written}\n", "")
    program = "import sys, oddly.cli\nsys.argv = ['oddly', '--version']\n"
    program += "try: oddly.cli.main()\nfinally: assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, capture_output=True)


def test_a_bare_command_shows_help(oddly: Command) -> None:
    code, told, complaint = oddly()
    assert code in (0, 2) and "train" in told + complaint


def test_commands_come_as_a_newcomer_needs_them(oddly: Command) -> None:
    told = oddly("--help")[1]
    names = ("demo", "clean", "report", "review", "apply", "train", "compare", "reproduce")
    places = [told.index(f" {name} ") for name in (*names, "benchmark")]
    assert places == sorted(places)
