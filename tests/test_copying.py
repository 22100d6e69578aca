from __future__ import annotations

from pathlib import Path

import pytest

from oddly.copying import _free_name, about_missing, check_empty, copy_files
from oddly.errors import InputError
from oddly.layout import path_parts
from oddly.pictures import Unreadable


def test_targets_stay_below_the_copy_and_apart(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    plan = [("a", "../../up.png"), ("b", "/up.png"), ("c", "UP.png"), ("d", "x/./y.png")]
    copied = copy_files(plan, lambda id: str(tmp_path / "one"), tmp_path / "deep" / "copy")
    names = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.png"))
    assert names == [f"deep/copy/{n}.png" for n in ("UP-3", "up-2", "up", "x/y")]
    assert copied.files == 4 and path_parts("/a/../b//c") == ["a", "b", "c"]


def test_nothing_to_find_is_an_error_and_leaves_no_folder(tmp_path: Path) -> None:
    def find(id: str) -> str:
        raise Unreadable("file not found")

    with pytest.raises(
        InputError, match=r"none of the 2 files can be read.*: a \(file not found\)"
    ):
        copy_files([("a", "a"), ("b", "b")], find, tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


def test_many_files_of_one_name_take_no_longer_than_others(tmp_path: Path) -> None:
    taken: dict[str, int] = {}
    names = [_free_name("a/image.png", taken) for _ in range(20_000)]
    assert names[:3] == ["a/image.png", "a/image-2.png", "a/image-3.png"]
    assert len(set(names)) == 20_000 and _free_name("a/image-7.png", taken) == "a/image-7-2.png"


def test_the_folder_one_is_in_cannot_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="is the current folder"):
        check_empty(Path("."))


def test_what_is_missing_in_one_line() -> None:
    assert about_missing([]) is None
    assert about_missing(["a (gone)"]) == "1 file was not copied: a (gone)"
    many = about_missing([str(i) for i in range(1200)])
    assert many == "1,200 files were not copied: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …"
