"""Names that somebody else chose: on a terminal they are signs, and never orders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oddly.cli.app import remark, say
from oddly.errors import shown
from tests.clean.conftest import write_pictures
from tests.command import Command

QUICK = ("--model", "resnet8", "--epochs", 3, "--prune-after", 2, "--percentile", 60)
TITLE = "pl\x1b]0;PWNED\x07\x1b[31mane"  # sets the window's title, then the colour
TURNED = "gnp.\u202eegnaro"  # what follows is written from right to left
TWO_LINES = "red\n0 of 36 images look mislabelled"


@pytest.fixture
def oddly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """36 pictures; the names of classes and of some files would be obeyed by a terminal."""
    root = tmp_path / "photos"
    write_pictures(root, 12)
    for plain, odd in (("red", TWO_LINES), ("green", TITLE), ("blue", TURNED)):
        try:
            (root / plain).rename(root / odd)
        except OSError:
            pytest.skip("this file system does not take such names")
    for i, picture in enumerate(sorted(root.rglob("*.png"))):
        picture.rename(picture.with_name(f"{i}\x1b[2J\n.png"))
    return root


def test_a_name_stays_on_its_line_and_keeps_what_can_be_shown() -> None:
    assert shown("plüne → 2") == "plüne → 2"
    assert shown(TITLE) == r"pl\x1b]0;PWNED\x07\x1b[31mane"
    assert shown(TURNED) == r"gnp.\u202eegnaro" and shown("a\tb\r\nc") == r"a\tb\r\nc"


def test_what_looks_like_an_emoji_is_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    for tell in (say, remark):
        tell("a:smile:b [bold]")
    told = capsys.readouterr()
    assert told.out == told.err == "a:smile:b [bold]\n"


def refuse_orders(told: str) -> None:
    assert told and not [line for line in told.split("\n") if not line.isprintable()]


def test_no_name_gives_the_terminal_orders(oddly: Command, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ("clean", photos, "--out", out, *QUICK)
    code, told, progress = oddly(*command, "--top", 36, "--export", "ids")
    assert code == 0 and r"\x1b]0;PWNED\x07" in told and r"\u202e" in told
    refuse_orders(told)
    refuse_orders(progress)
    assert told.splitlines()[0] != "0 of 36 images look mislabelled"
    assert sum(line.startswith("  ") and " → " in line for line in told.splitlines()) >= 36
    listed = (out / "suspects.txt").read_text().split("\n")
    assert len(listed) == 37 and all(name.endswith(r"\n.png") for name in listed[:-1])
    assert r"36 ids contain line breaks, written as \n in suspects.txt" in progress.replace(
        r"\\", "\\"
    )
    code, told, _ = oddly("clean", "--resume", "--out", out, "--json")
    assert json.loads(told)["images"] == 36


def test_nor_do_those_of_a_training(oddly: Command, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, told, progress = oddly(
        *("train", photos, "--out", out, "--epochs", 2, "--prune-after", 1, "--percentile", 60)
    )
    assert code == 0
    refuse_orders(told)
    refuse_orders(progress)
    code, _, complaint = oddly("train", photos / TITLE)
    assert code == 2
    refuse_orders(complaint)
