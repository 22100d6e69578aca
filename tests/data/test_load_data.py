"""Names, folders and tables told apart (oddly/data/__init__.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from oddly.data import DATASETS, DataOptions, load_data
from oddly.errors import InputError

OPTIONS = DataOptions()


def test_known_names() -> None:
    assert {"digits", "cifar10", "cifar100", "cifar10n:worst", "cifar100n"} <= set(DATASETS)
    assert load_data("synthetic", OPTIONS).name == "synthetic"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("digit", "unknown dataset 'digit'; did you mean 'digits'?"),
        ("cifar10n:wurst", "did you mean 'cifar10n:worst'?"),
        ("cifar10n", "choose one: cifar10n:aggregate, cifar10n:random1"),
        ("./nowhere", r"\./nowhere: no such file or folder"),
        ("some/where", "some/where: no such file or folder"),
        ("~/no such folder", "no such file or folder"),
        ("labels.csv", r"labels\.csv: no such file or folder"),
        ("", "unknown dataset ''; known: "),
        ("photoz", r"unknown dataset 'photoz'; .*\(and no such file or folder exists\)"),
        ("x" * 5000, "unknown dataset 'xxx"),
        ("a\0b", r"unknown dataset 'a\\x00b'"),
    ],
)
def test_unknown_sources(
    source: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=reason) as caught:
        load_data(source, OPTIONS)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"x")
    with pytest.raises(InputError, match=r"a\.zip is neither an image folder nor"):
        load_data(str(tmp_path / "a.zip"), OPTIONS)


def test_a_known_name_wins_over_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "synthetic").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_data("synthetic", OPTIONS).name == "synthetic"
    with pytest.raises(InputError, match="contains no images"):
        load_data("./synthetic", OPTIONS)
