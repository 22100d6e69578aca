"""Images that cannot be read: what is told, what is left, and how to go on."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import oddly
from oddly.errors import InputError
from tests.clean.conftest import write_pictures

QUICK: dict[str, Any] = {"model": "resnet8", "epochs": 3, "prune_after": 2, "device": "cpu"}


def spoil(photos: Path, files: int) -> None:
    for picture in sorted(photos.rglob("*.png"))[:files]:
        picture.write_text("no picture")


def test_the_refusal_names_three_and_the_command_stands_alone(photos: Path, tmp_path: Path) -> None:
    spoil(photos, 5)
    out = tmp_path / "my run"
    with pytest.raises(InputError) as refused:
        oddly.clean(photos, out, **QUICK)
    told, command = str(refused.value).split("\n")
    assert told.startswith("5 of 36 images cannot be read: blue/blue0.png (not an image), ")
    assert told.count("(not an image)") == 3
    assert told.endswith(f", … (full list in {out}/unreadable.csv); to leave them out, run")
    assert command == f"  oddly clean --resume --skip-unreadable --out '{out}'"


def test_the_same_command_with_consent_goes_on(photos: Path, tmp_path: Path) -> None:
    spoil(photos, 2)
    out = tmp_path / "run"
    with pytest.raises(InputError, match="2 of 36 images"):
        oddly.clean(photos, out, **QUICK)
    with pytest.raises(InputError, match="unfinished run"):  # another one than was begun
        oddly.clean(photos, out, skip_unreadable=True, **{**QUICK, "epochs": 4})
    write_pictures(tmp_path / "others", 4)
    with pytest.raises(InputError, match="unfinished run"):
        oddly.clean(tmp_path / "others", out, skip_unreadable=True, **QUICK)
    listed = out / "unreadable.csv"
    listed.write_text(listed.read_text("utf-8"), "utf-16")  # as a spreadsheet may save it
    run = oddly.clean(photos, out, skip_unreadable=True, **QUICK)
    assert len(run.verdicts) == 34 and run.is_done
    with pytest.raises(InputError, match="finished run"):
        oddly.clean(photos, out, skip_unreadable=True, **QUICK)


@pytest.mark.parametrize("frozen", [False, True])
def test_where_none_can_be_read_the_reasons_are_told(
    frozen: bool, photos: Path, tmp_path: Path, tiny_weights: Path
) -> None:
    spoil(photos, 36)
    backbone = {"backbone": "test_efficientnet", "weights": str(tiny_weights), "image_size": 32}
    with pytest.raises(
        InputError, match=r"none of the 36 images .*: not an image \(blue/.*\.png, .*csv"
    ):
        oddly.clean(photos, tmp_path / "run", **(backbone if frozen else QUICK))
    with open(tmp_path / "run/unreadable.csv", encoding="utf-8", newline="") as file:
        assert len(list(csv.reader(file))) == 37
    with pytest.raises(
        InputError, match=r"none of the 36 training .*: not an image \(blue/.*, …\)$"
    ):
        oddly.train(photos, tmp_path / "trained", epochs=1, device="cpu")


@pytest.mark.parametrize("frozen", [False, True])
def test_a_table_of_all_labels_may_name_what_cannot_be_read(
    frozen: bool, photos: Path, tmp_path: Path, tiny_weights: Path
) -> None:
    files = sorted(photos.rglob("*.png"))
    rows = [f"{file.relative_to(photos)},{file.parent.name}" for file in files]
    (tmp_path / "labels.csv").write_text("\n".join(["id,label", *rows, ""]))
    spoil(photos, 1)
    backbone = {"backbone": "test_efficientnet", "weights": str(tiny_weights), "image_size": 32}
    options = {**(backbone if frozen else QUICK), "labels": str(tmp_path / "labels.csv")}
    run = oddly.clean(photos, tmp_path / "run", skip_unreadable=True, **options)
    assert run.is_done and len(run.verdicts) == 35
    oddly.train(photos, tmp_path / "trained", skip_unreadable=True, **{**options, "epochs": 3})
