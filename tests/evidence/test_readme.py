"""The list of what makes which file leaves none out; the folder stays apart and small."""

from __future__ import annotations

import importlib
import re

from evidence.again import RESULTS

ROOT = RESULTS.parents[1]
README = (ROOT / "evidence/README.md").read_text(encoding="utf-8")
SCRIPTS = sorted((ROOT / "evidence").glob("*.py"))


def test_every_stored_file_is_in_the_list() -> None:
    table = README.split("| made by |")[1].split("\n\n")[0]
    there = {path.name + "/" * path.is_dir() for path in RESULTS.iterdir()}
    assert there == set(re.findall(r"`([\w/]+(?:\.json|/))`", table))


def test_every_command_that_is_named_can_be_called() -> None:
    pages = [README, *(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))]
    named = {name for page in pages for name in re.findall(r"python -m evidence\.(\w+)", page)}
    with_main = {file.stem for file in SCRIPTS if "__main__" in file.read_text(encoding="utf-8")}
    assert named == with_main
    for name in named:
        module = importlib.import_module(f"evidence.{name}")
        assert callable(module.run) and f"python -m evidence.{name}" in str(module.__doc__)


def test_every_file_is_named_and_short() -> None:
    for file in SCRIPTS:
        assert file.stem == "__init__" or f"{file.stem}" in README, file.name
        assert len(file.read_text(encoding="utf-8").splitlines()) <= 125, file.name


def test_the_package_does_without_it() -> None:
    for file in (ROOT / "oddly").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) evidence", file.read_text("utf-8"), re.M), file
