"""One folder has one name, and a run finds its files again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import oddly
from oddly.clean.api import choose_out
from oddly.data.synthetic import synthetic
from oddly.engine import checkpoint
from oddly.engine.api import choose_folder
from oddly.engine.config import RunConfig
from oddly.engine.resume import resumed_config
from oddly.engine.whereabouts import locate, name_after
from oddly.errors import InputError
from oddly.records import write_json
from tests.clean.conftest import write_pictures
from tests.interrupt import StopAfter

SPELLINGS = ("photos", "photos/", "./photos", "photos/.", "../here/photos", "~/photos", "link")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("here/photos", "there/photos"):
        write_pictures(tmp_path / folder, 4)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "here"))
    Path("link").symlink_to("photos")
    return tmp_path / "here"


def test_a_folder_is_the_same_however_it_is_spelt(here: Path) -> None:
    spellings = (*SPELLINGS, str(here / "photos"))
    assert {locate(data) for data in spellings} == {str(here / "photos")}
    assert {name_after(data) for data in spellings} == {"photos"}
    assert {choose_out(data, None) for data in spellings} == {Path("runs/photos-clean")}
    (folder,) = {choose_folder(RunConfig(data), None) for data in spellings}
    assert folder.name.startswith("photos-odd-")
    assert choose_folder(RunConfig("../there/photos"), None) != folder


def test_names_without_a_folder_of_that_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("digits").mkdir()  # the dataset is meant
    assert locate("digits") == "digits" and name_after("cifar10n:worst") == "cifar10n-worst"
    Path("photos.v2").mkdir()
    Path("labels.csv").touch()
    assert (name_after("photos.v2"), name_after("labels.csv")) == ("photos.v2", "labels")
    assert locate("photso/") == "photso/" and name_after("/") == "data"
    for odd, name in (("new\nline", r"new\nline"), ("n" * 250, "n" * 50)):
        Path(odd).mkdir()
        assert name_after(odd) == name
    monkeypatch.chdir("photos")
    assert name_after(".") == "photos"


def test_another_folder_of_that_name_is_told_of(here: Path) -> None:
    oddly.clean("photos", epochs=1, device="cpu")
    with pytest.raises(
        InputError, match=f"already contains a finished run of {here}/photos; choose another"
    ):
        oddly.clean("../there/photos", epochs=1, device="cpu")


def test_data_of_ones_own_go_by_their_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though a folder of that name lies where the run was begun."""
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    data = replace(synthetic(3, 20, 8), name="photos")
    with pytest.raises(KeyboardInterrupt):
        oddly.train(data, "run", watcher=StopAfter(1), epochs=2, method="erm")
    monkeypatch.chdir("../there")
    with pytest.raises(InputError, match="was started with data = photos, not pictures"):
        oddly.train(replace(data, name="pictures"), "../here/run", resume=True)
    run = oddly.train(data, "../here/run", resume=True)
    assert [row["epoch"] for row in run.metrics] == [1, 2]


def test_official_data_are_found_where_a_run_was_begun(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("data").mkdir()
    environment = {"folder": str(here)}
    for folder, data in (("run", "cifar10"), ("own", "photos")):
        Path(folder).mkdir()
        write_json(here / folder / "config.json", {**RunConfig(data).to_dict(), "format": 1})
        write_json(here / folder / "environment.json", environment)
    monkeypatch.chdir("../there")
    assert resumed_config(here / "run", None, {}).data_dir == str(here / "data")
    assert resumed_config(here / "run", None, {"data_dir": "x"}).data_dir == "x"
    assert resumed_config(here / "own", None, {}).data_dir is None


def test_a_run_goes_on_from_elsewhere(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    Path("labels.csv").write_text("id,label\nred/red0.png,blue\n")
    options = {"epochs": 2, "method": "erm", "labels": "labels.csv"}
    with pytest.raises(KeyboardInterrupt):
        oddly.train("photos", "run", watcher=StopAfter(1), **options)
    monkeypatch.chdir("../there")  # with photos of its own, which are not meant
    with pytest.raises(
        InputError, match="was started with data = .*here/photos, not .*there/photos"
    ):
        oddly.train("photos", "../here/run", resume=True)
    same = {**options, "labels": "../here/labels.csv"}
    run = oddly.train("../here/photos/", "../here/run", resume=True, **same)
    assert [row["epoch"] for row in run.metrics] == [1, 2]
    assert run.verdicts.set_index("id").given_name["red/red0.png"] == "blue"
