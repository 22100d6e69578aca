"""Small images: which network is tried, and which is taken."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

import oddly
from oddly.clean import trial
from oddly.clean.look import Looked
from oddly.clean.settings import ENOUGH, Tried, choose
from oddly.clean.survey import Survey
from oddly.cli.again import command_again
from oddly.data import DataOptions, load_data
from oddly.data.base import LabelledData
from oddly.data.source import ImageSource
from oddly.engine.config import RunConfig
from oddly.errors import InputError

CPU = torch.device("cpu")
SMALL = Survey(images=600, classes=10, smallest_class=50, largest_class=70, short_side=32)


@pytest.mark.parametrize(
    ("found", "asked", "wanted"),
    [
        ({}, {}, True),
        ({}, {"labels": "labels.csv", "settings": {}, "skip_unreadable": True}, True),
        ({"short_side": 15}, {}, False),  # from scratch in any case
        ({"short_side": 64}, {}, False),
        ({"short_side": None}, {}, False),
        ({"images": 299}, {}, False),
        ({"images": 2_000}, {}, False),
        ({}, {"model": "resnet8"}, False),
        ({}, {"model": None, "fine_tune": False}, True),
        ({}, {"method": "elr"}, False),
        ({}, {"epochs": 3, "settings": {"percentile": 10.0}}, True),  # they name no network
        ({}, {"settings": {"counterfactual": "weights"}}, False),
    ],
)
def test_only_a_few_small_images_are_tried(
    found: dict[str, Any], asked: dict[str, Any], wanted: bool
) -> None:
    assert trial.is_wanted(replace(SMALL, **found), asked) == wanted


@pytest.mark.parametrize(
    ("tried", "model", "reason"),
    [
        (Tried(600, 11.9), "feature_head", "tried on 600: contrast 11.9 frozen"),
        (Tried(600, 8.2, 11.5), "resnet8", "tried on 600: contrast 8.2 frozen, 11.5 from scratch"),
        (Tried(600, 9.2, 5.3), "feature_head", "contrast 9.2 frozen, 5.3 from scratch"),
    ],
)
def test_contrasts_decide_and_the_table_says_so(tried: Tried, model: str, reason: str) -> None:
    config, choices = choose("digits", SMALL, {}, "cpu", tried)
    assert config.model == model
    assert next(each for each in choices if each.name == "network").reason.endswith(reason)


def write_digits(folder: Path, number: int) -> None:
    """At twice their size: no photographs, but no smaller than what a network for these takes."""
    digits = load_digits()
    draw = np.random.default_rng(0)
    for place in draw.permutation(len(digits.images))[:number]:
        wrong = draw.random() < 0.15
        label = (digits.target[place] + (draw.integers(1, 10) if wrong else 0)) % 10
        pixels = Image.fromarray((digits.images[place] * 15).astype(np.uint8)).resize((16, 16))
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
        pixels.save(folder / str(label) / f"{place:04d}-{'wrong' if wrong else 'right'}.png")


@pytest.mark.slow
def test_drawn_digits_get_a_network_of_their_own(tmp_path: Path) -> None:
    write_digits(tmp_path / "digits", 500)
    run = oddly.clean(tmp_path / "digits", out=tmp_path / "run")
    assert run.config["model"] == "resnet8" and run.config["backbone"] is None
    again = command_again(run, None)  # the next pass need not try it again
    assert again[-2:] == ["--model", "resnet8"] and run.config["asked"] == {}
    assert run.config["tried"]["scratch"] >= ENOUGH * run.config["tried"]["frozen"]
    wrong = run.verdicts.id.str.contains("wrong")
    found = (wrong & ~run.verdicts.keep).sum()
    assert found / wrong.sum() > 0.8 and found / (~run.verdicts.keep).sum() > 0.8


def contrasts(monkeypatch: pytest.MonkeyPatch, frozen: float | None, scratch: float) -> list[str]:
    """What the networks are found to reach, and which of them were trained."""
    trained: list[str] = []

    class Found:
        def __init__(self, config: RunConfig, folder: Path, data: LabelledData) -> None:
            kind = "frozen" if config.backbone else "scratch"
            trained.append(kind)
            told = {"frozen": frozen, "scratch": scratch}[kind]
            self.summary = {"contrast": told, "examples": len(data.train)}

    monkeypatch.setattr(trial, "run_config", Found)
    return trained


def listed_digits(folder: Path, number: int) -> LabelledData:
    write_digits(folder / "digits", number)
    return load_data(str(folder / "digits"), DataOptions(pool_splits=True, decode=False))


@pytest.mark.parametrize(
    ("alike", "frozen", "scratch", "trained", "best"),
    [
        (False, 5.0, 30.0, ["frozen"], "frozen"),
        (True, 12.0, 9.0, ["frozen", "scratch"], "scratch"),
        (True, 12.0, 8.9, ["frozen", "scratch"], "frozen"),
        (True, None, 5.0, ["frozen"], None),
    ],
)
def test_the_second_is_trained_where_images_are_much_alike_to_the_first(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    alike: bool,
    frozen: float | None,
    scratch: float,
    trained: list[str],
    best: str | None,
) -> None:
    listed = listed_digits(tmp_path, 310)
    seen = contrasts(monkeypatch, frozen, scratch)
    monkeypatch.setattr(trial, "is_centred", lambda features: alike)
    tried = trial.try_both("digits", listed, SMALL, {}, CPU)
    assert seen == trained and (tried and tried.best) == best
    assert tried is None or tried.images == 310


@pytest.mark.parametrize("bad", [6, 305])
def test_too_few_that_can_be_read_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    listed = listed_digits(tmp_path, 305)
    for file in sorted((tmp_path / "digits").rglob("*.png"))[:bad]:
        file.write_bytes(b"no picture")
    contrasts(monkeypatch, 8.0, 12.0)
    assert trial.try_both("digits", listed, SMALL, {"skip_unreadable": True}, CPU) is None


def test_only_what_was_read_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = listed_digits(tmp_path, 305)
    for file in sorted((tmp_path / "digits").rglob("*.png"))[:4]:
        file.write_bytes(b"no picture")
    contrasts(monkeypatch, 8.0, 12.0)
    tried = trial.try_both("digits", listed, SMALL, {"skip_unreadable": True}, CPU)
    assert tried and tried.images == 301


def test_where_a_table_leaves_too_few_nothing_is_tried(tmp_path: Path) -> None:
    listed = listed_digits(tmp_path, 301)
    table = tmp_path / "labels.csv"
    for removed, wanted in ((1, True), (2, False)):
        gone = [f"{name},,yes\n" for name in listed.train.ids[:removed]]
        table.write_text("id,label,remove\n" + "".join(gone))
        some = trial.choose_some(listed, replace(SMALL, images=301), {"labels": str(table)})
        assert (some is not None) == wanted
    assert trial.choose_some(listed, replace(SMALL, short_side=64), {}) is None


def test_nothing_beside_what_is_tried_is_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's folder of temporary files is somebody else's, and may be large."""
    looked_into: list[Path] = []

    def look(some: LabelledData, config: RunConfig, folder: Path, *more: object) -> Looked:
        looked_into.extend(folder.parent.glob("*/"))
        raise InputError("enough")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(trial, "look", look)
    (tmp_path / "somebody-elses").mkdir()
    assert trial.try_both("digits", listed_digits(tmp_path, 310), SMALL, {}, CPU) is None
    assert [folder.name for folder in looked_into] == ["seen"]


def test_without_room_for_temporary_files_nothing_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container whose only writable folder is that of the run."""
    listed = listed_digits(tmp_path, 310)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert trial.try_both("digits", listed, SMALL, {}, CPU) is None


def test_a_network_that_cannot_have_what_was_asked_for_is_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(config: RunConfig, folder: Path, data: LabelledData) -> None:
        raise InputError("cutout needs images")

    monkeypatch.setattr(trial, "run_config", refuse)
    assert trial.try_both("digits", listed_digits(tmp_path, 310), SMALL, {"cutout": 2}, CPU) is None


def test_labels_of_a_table_are_the_ones_that_are_tried(tmp_path: Path) -> None:
    listed = listed_digits(tmp_path, 12)
    table = tmp_path / "labels.csv"
    first, second, *rest = listed.train.ids
    table.write_text(f"id,label,remove\n{first},,yes\n{second},9,\n")
    given = trial.under_labels(listed, str(table))
    assert given.train.ids == [second, *rest]
    assert int(given.train.labels[0]) == listed.class_names.index("9")
    assert isinstance(given.train.images, ImageSource) and len(given.train.images) == 11
    assert given.train.images.name(0).endswith(Path(second).name)


def test_a_bad_table_of_labels_is_told_before_anything_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_digits(tmp_path / "digits", 310)
    seen = contrasts(monkeypatch, 8.0, 12.0)
    with pytest.raises(InputError, match="does not exist"):
        oddly.clean(tmp_path / "digits", out=tmp_path / "run", labels=str(tmp_path / "none.csv"))
    assert not seen


def test_the_same_command_with_consent_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was tried is not what was asked for."""
    write_digits(tmp_path / "digits", 310)
    next((tmp_path / "digits").rglob("*.png")).write_bytes(b"no picture")
    contrasts(monkeypatch, 12.0, 5.0)
    with pytest.raises(InputError, match="1 of 310 images cannot be read"):
        oddly.clean(tmp_path / "digits", tmp_path / "run")
    run = oddly.clean(tmp_path / "digits", tmp_path / "run", skip_unreadable=True)
    assert run.is_done and len(run.verdicts) == 309 and run.config["tried"]["frozen"] == 12


def test_at_most_so_many_are_tried_each_under_its_own_label(tmp_path: Path) -> None:
    listed = listed_digits(tmp_path, 40)
    some = trial.take_some(listed)
    assert some.train.ids == listed.train.ids  # all of so few, in their order
    trial_of_ten = trial.take_some(listed, 10)
    assert len(trial_of_ten.train) == 10
    for name, label in zip(trial_of_ten.train.ids, trial_of_ten.train.labels, strict=True):
        assert name.startswith(f"{listed.class_names[int(label)]}/")
