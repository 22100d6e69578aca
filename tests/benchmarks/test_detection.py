"""`oddly benchmark detection` as a user calls it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oddly.benchmarks.detection.cases import CASES, SMALL_CASES
from oddly.benchmarks.detection.methods import METHODS
from oddly.benchmarks.detection.table import COSTS, FIGURES
from tests.command import Command, start


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def test_missing_cells_are_shown_as_missing(command: Command, tmp_path: Path) -> None:
    code, out, _ = command("benchmark", "detection", "--results", tmp_path, "--work", tmp_path)
    assert code == 0
    assert out.count("missing, 0 of") == len(CASES) * len(METHODS)
    assert not list(tmp_path.iterdir())  # only --next writes


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--cases", "cifar10-uniform-4"), "did you mean 'cifar10-uniform-40'"),
        (("--methods", "odd,cleanlap"), "did you mean 'cleanlab'"),
        (("--minutes", "3"), "--minutes only works with --next"),
    ],
)
def test_mistakes_are_told_in_one_line(
    command: Command, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    code, out, err = command("benchmark", "detection", "--work", tmp_path, *arguments)
    assert code == 2 and not out
    assert told in err and len(err.splitlines()) == 1


def test_missing_data_is_told_in_one_line(command: Command, tmp_path: Path) -> None:
    code, _, err = command(
        *("benchmark", "detection", "--next", "--cases", "cifar10-clean", "--methods", "odd"),
        *("--results", tmp_path / "r", "--work", tmp_path / "w", "--data-dir", tmp_path),
    )
    assert code != 0 and len(err.splitlines()) == 1 and "cifar" in err.lower()
    assert not list(tmp_path.rglob("*.json"))  # no fault of the job's: it is tried again


class Small:
    """`--small --next` into one folder."""

    def __init__(self, folder: Path) -> None:
        self.work, self.results = folder / "work", folder / "results"
        self.folders = ("--work", self.work, "--results", self.results)

    def arguments(self, *more: object) -> tuple[object, ...]:
        return ("benchmark", "detection", "--small", "--device", "cpu", *self.folders, *more)

    def files(self) -> dict[str, int]:
        folders = (self.work, self.results)
        found = [file for folder in folders for file in folder.rglob("*.json")]
        return {file.name + str(file.parent): file.stat().st_mtime_ns for file in found}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Small, str]]:
    """Killed after its first finished trainings, then called again until the table is full."""
    small = Small(tmp_path_factory.mktemp("detection"))
    process = start(*small.arguments("--next", "--jobs", 2))
    until = time.monotonic() + 240
    while len(small.files()) < 4 and time.monotonic() < until:
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)
    process.kill()
    process.communicate()
    before = small.files()
    assert 4 <= len(before) < 30
    process = start(*small.arguments("--next", "--json"))
    out, err = process.communicate(timeout=500)
    assert process.returncode == 0, err
    after = small.files()
    assert {name: after[name] for name in before} == before  # nothing was trained twice
    yield small, out


@pytest.mark.slow
def test_every_row_has_all_figures(small: tuple[Small, str]) -> None:
    rows = json.loads(small[1])["rows"]
    assert [(row["case"], row["method"]) for row in rows] == [
        (case, method) for case in SMALL_CASES for method in METHODS
    ]
    for row in rows:
        assert row["state"] == "stored" and row["jobs_done"] == row["jobs"]
        absent = {name for name in (*FIGURES, *COSTS) if row[name] is None}
        allowed = {"erm": {"precision"}, "odd": set(), "odd_paper": set()}
        assert absent == allowed.get(row["method"], {"test_accuracy"})
        assert row["f1"] <= row["best_f1"] + 0.05  # cleanlab and AUM do not cut their ranking
        assert 0.5 < row["auroc"] <= 1 and 0.3 < row["error_rate"] < 0.45


@pytest.mark.slow
def test_the_figures_make_sense(small: tuple[Small, str]) -> None:
    rows = {(row["case"], row["method"]): row for row in json.loads(small[1])["rows"]}
    uniform = {method: rows["small-digits-uniform-40", method] for method in METHODS}
    for method in ("odd", "cleanlab", "predicted", "aum"):
        assert uniform[method]["f1"] > 0.8, method  # chance: 2 · 0.36 / 1.36 = 0.53
    assert uniform["odd"]["factor"] <= 1.0 < uniform["cleanlab"]["factor"]
    assert uniform["cleanlab"]["seconds"] == uniform["predicted"]["seconds"]  # the same folds
    assert uniform["erm"]["factor"] == 1
    assert uniform["erm_gmm"]["factor"] == pytest.approx((10 + 1 / 3) / SMALL_EPOCHS)
    assert uniform["aum"]["to_model"] == pytest.approx(
        uniform["aum"]["factor"] + 1 - uniform["aum"]["removed_fraction"]
    )


SMALL_EPOCHS = next(iter(SMALL_CASES.values())).recipe.epochs  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_cell_says_how_it_was_made(small: tuple[Small, str]) -> None:
    for method in METHODS:
        path = small[0].results / f"small-digits-uniform-40--{method}--seed0.json"
        cell: dict[str, Any] = json.loads(path.read_text())
        assert path.stat().st_size < 20_000
        assert cell["method"] == method and cell["seed"] == 0
        assert cell["case"]["noise"] == 0.4 and cell["config"]["model"] == "resnet8"
        assert cell["environment"]["packages"]["torch"] and cell["environment"]["device"] == "cpu"
        for job in cell["jobs"]:
            assert len(job["curve"]["train_loss"]) == cell["config"]["epochs"]
        assert "data_dir" not in path.read_text() and str(Path.home()) not in path.read_text()


@pytest.mark.slow
def test_a_full_table_trains_nothing_and_reads_well(
    small: tuple[Small, str], command: Command
) -> None:
    before = small[0].files()
    code, out, err = command(*small[0].arguments("--next", "--minutes", 1))
    assert (code, err) == (0, "") and small[0].files() == before
    assert "missing" not in out and "% of the labels are wrong" in out
    assert max(len(line) for line in out.splitlines()) < 100


@pytest.mark.slow
def test_a_verdict_can_be_made_elsewhere(
    small: tuple[Small, str], command: Command, tmp_path: Path
) -> None:
    """The trainings' files alone are enough: no data, no training, only the package."""
    elsewhere = tmp_path / "results"
    code, out, err = command(
        *small[0].arguments("--next", "--methods", "cleanlab,aum", "--json"),
        *("--results", elsewhere),
    )
    assert code == 0 and err.count("stored") == 4 and "trained in" not in err
    for file in elsewhere.iterdir():
        assert json.loads(file.read_text()) == json.loads(
            (small[0].results / file.name).read_text()
        )


@pytest.mark.slow
def test_forget_makes_room_for_a_new_training(
    small: tuple[Small, str], command: Command, tmp_path: Path
) -> None:
    import shutil

    copy = Small(tmp_path)
    shutil.copytree(small[0].work, copy.work)
    shutil.copytree(small[0].results, copy.results)
    only = ("--methods", "cleanlab", "--cases", "small-digits-uniform-40")
    code, out, _ = command(*copy.arguments("--forget", *only))
    assert code == 0 and "missing, 0 of 5" in out
    assert not list(copy.work.rglob("small-digits-uniform-40/seed0/fold-*"))
    assert len(list(copy.results.iterdir())) == 2 * len(METHODS) - 1
    assert os.listdir(small[0].results) != os.listdir(copy.results)
