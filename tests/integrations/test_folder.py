"""A verdict of a loop of one's own, written as a run that the pages can show."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from oddly.core import Counterfactual, Verdict
from oddly.errors import InputError
from oddly.integrations.folder import save_run
from oddly.review.images import find_images
from oddly.review.session import Session
from oddly.review.suspects import Suspects
from tests.command import Command

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["cat", "dog", "owl"]


def make_verdict() -> Verdict:
    """Four examples; the second and the last go."""
    scores = torch.tensor([-2.0, 3.0, -1.0, 4.0])
    return Verdict(
        keep=scores < 1,
        scores=scores,
        losses=scores.exp(),
        labels=torch.tensor([0, 1, 2, 0], dtype=torch.int16),
        threshold=1.0,
        percentile=6.0,
        epoch=5,
        counterfactual=Counterfactual.from_losses(torch.tensor([0.5, 1.0, 2.0, 3.5]), "sentinels"),
        noise_rate=(0.4, 0.3, 0.5),
    )


def test_a_doubt_goes_with_it(tmp_path: Path) -> None:
    sure = save_run(make_verdict(), tmp_path / "sure", NAMES)
    assert sure.doubt is None and sure.summary["contrast"] is None
    run = save_run(
        replace(make_verdict(), contrast=2.8, contrast_needed=6.5), tmp_path / "run", NAMES
    )
    assert run.doubt and "(contrast 2.80, 6.50 needed)" in run.doubt
    assert run.summary["contrast"] == 2.8


def test_report_and_review_can_show_it(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    ids = [f"{number}.png" for number in range(4)]
    for number, id in enumerate(ids):
        Image.new("RGB", (8, 8), (60 * number, 0, 0)).save(images / id)
    predictions = torch.tensor([0, 2, 2, 1])
    run = save_run(make_verdict(), tmp_path / "run", NAMES, ids, images, predictions)
    assert run.is_done
    assert run.summary["estimated_noise"] == {"rate": 0.4, "low": 0.3, "high": 0.5}
    assert run.summary["data"] == "images"  # what the page is called
    assert run.verdicts["keep"].tolist() == [True, False, True, False]
    assert run.verdicts["given_name"].tolist() == ["cat", "dog", "owl", "cat"]
    assert run.verdicts["suggested_name"].tolist() == ["cat", "owl", "owl", "dog"]
    suspects = Suspects.read(run)
    assert [suspects[rank].id for rank in range(len(suspects))] == ["3.png", "1.png"]
    assert find_images(run, "3.png").read("3.png").getpixel((0, 0)) == (180, 0, 0)
    command = [sys.executable, "-m", "oddly", "report", str(run.path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (run.path / "report.html").read_text()
    assert "3.png" in page
    assert "owl" in page


def test_without_names_predictions_or_files(tmp_path: Path) -> None:
    run = save_run(make_verdict(), tmp_path / "run", NAMES)
    assert run.verdicts["id"].tolist() == ["0", "1", "2", "3"]
    assert run.verdicts["suggested_name"].isna().all()
    with pytest.raises(InputError, match="finished run; choose another folder or pass overwrite="):
        save_run(make_verdict(), tmp_path / "run", NAMES)
    save_run(make_verdict(), tmp_path / "run", NAMES, overwrite=True)


def test_numbers_and_lists_will_do(tmp_path: Path) -> None:
    names: Any = np.array(NAMES)
    run = save_run(make_verdict(), tmp_path / "run", names, range(10, 14), predictions=[0, 2, 2, 1])
    assert run.verdicts["id"].tolist() == ["10", "11", "12", "13"]
    assert run.verdicts["suggested_name"].tolist() == ["cat", "owl", "owl", "dog"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ids": ["a", "b", "c"]}, "3 ids for 4 examples"),
        ({"ids": ["a", "b", "a", "c"]}, "ids must be unique, but 'a' occurs 2 times"),
        (
            {"ids": ["a.png", "b.png", "c.png", "d.png"]},
            "'a.png' looks like a file: pass its folder as data",
        ),
        ({"data": "."}, "data needs ids: pass the image files"),
        ({"ids": list("abcd"), "data": "nowhere"}, "nowhere: no such folder"),
        ({"predictions": torch.zeros(4, 3)}, r"4 class numbers, got torch.float32 \(4, 3\)"),
        ({"predictions": [0, 1]}, r"4 class numbers, got torch.int64 \(2,\)"),
        ({"predictions": [0, 1, 2, 3]}, "predictions contain class 3, but there are 3 class names"),
        ({"class_names": ["cat", "dog"]}, "labels contain class 2, but there are 2 class names"),
        ({"class_names": dict(enumerate(NAMES))}, "not a dict: use the values of id2label"),
        ({"class_names": "abc"}, "class_names must be a list of names, got str"),
        ({"class_names": set(NAMES)}, "class_names must be a list of names, got set"),
        ({"class_names": []}, "labels contain class 2, but there are 0 class names"),
        ({"class_names": 3}, "class_names must be a list of names, got int"),
        ({"class_names": ["cat", "dog", "cat"]}, "names must be unique, but 'cat' occurs 2 times"),
        (
            {"ids": [f"{i}.png" for i in range(4)], "data": "."},
            r"0\.png: no such image; ids must be",
        ),
    ],
)
def test_what_cannot_be_saved_leaves_no_folder(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        save_run(make_verdict(), tmp_path / "run", **{"class_names": NAMES, **settings})
    assert not (tmp_path / "run").exists()


def test_without_a_verdict_or_a_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no verdict to save"):
        save_run(None, tmp_path / "run", NAMES)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(
        InputError, match="is not empty and not a run folder; choose another folder$"
    ):
        save_run(make_verdict(), tmp_path, NAMES)


def test_pictures_are_found_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [f"{number}.png" for number in range(4)]
    (tmp_path / "images").mkdir()
    for id in ids:
        Image.new("RGB", (8, 8), (60, 0, 0)).save(tmp_path / "images" / id)
    monkeypatch.chdir(tmp_path)
    run = save_run(make_verdict(), tmp_path / "run", NAMES, ids, "images")
    monkeypatch.chdir(tmp_path / "run")
    assert find_images(run, "3.png").read("3.png").getpixel((0, 0)) == (60, 0, 0)


def test_decided_without_files_there_is_no_command_to_paste(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = save_run(make_verdict(), tmp_path / "run", NAMES)
    session = Session(run)
    session.decide(0, "remove", None, 0)
    session.decisions.close()
    code, out, err = Command(monkeypatch, capsys)("apply", run.path)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "0 kept, 0 changed, 1 removed",
        f"labels  {run.path}/labels.csv",
        "1 of 2 suspects is undecided: its label stays as it is",
    ]
    assert (run.path / "labels.csv").read_text().splitlines()[1] == "3,,yes,person"
