"""The formats as the tools' own documentation gives them."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from oddly.clean.export import EXPORTS, about_breaks
from oddly.clean.findings import suspects_of
from oddly.clean.leave import write_duplicates, write_unreadable, write_verdicts_csv
from oddly.data import synthetic
from oddly.errors import InputError
from oddly.records import Run, RunWriter
from tests.clean.runs import write_run

IDS = ["x/1.png", "x/ä 2.png", "y/3.png", "y/4.png"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "photos").mkdir()
    return write_run(tmp_path / "run", str(tmp_path / "photos"), IDS, removed=2)


def test_plain_ids(run: Run) -> None:
    path = EXPORTS["ids"](run, suspects_of(run))
    assert path.read_text().splitlines() == IDS[:2]
    EXPORTS["ids"](run, suspects_of(run, top=3))
    assert path.read_text().splitlines() == IDS[:3]


def test_cleanlab_columns(run: Run) -> None:
    with open(EXPORTS["cleanlab"](run, suspects_of(run)), encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == [
        *("id", "is_label_issue", "label_score", "given_label", "predicted_label")
    ]
    assert [row["is_label_issue"] for row in table] == ["True", "True", "False", "False"]
    scores = [float(row["label_score"]) for row in table]
    assert all(score < 0.5 for score in scores[:2]) and all(score > 0.5 for score in scores[2:])
    assert scores[0] == pytest.approx(1 / (1 + 2.718281828**3), abs=1e-6)
    assert (table[0]["given_label"], table[0]["predicted_label"]) == ("a", "b")


def test_fiftyone_folder(run: Run, tmp_path: Path) -> None:
    folder = EXPORTS["fiftyone"](run, suspects_of(run))
    labels = json.loads((folder / "labels.json").read_text())
    assert labels["classes"] == ["a"] and set(labels["labels"]) == set(IDS)
    assert labels["labels"][IDS[1]] == {
        "label": "a",
        "attributes": {
            "suspect": True,
            "suggested": "b",
            "suggested_confidence": 0.75,
            "score": 2.75,
        },
    }
    files = json.loads((folder / "data.json").read_text())
    assert files[IDS[1]] == str(tmp_path / "photos" / IDS[1])


@pytest.mark.parametrize("name", ["fiftyone", "label-studio"])
def test_files_of_data_that_are_gone_are_not_made_up(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "photos").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"photos and its images no longer exist"):
        EXPORTS[name](run, suspects_of(run))


def test_label_studio_tasks(run: Run) -> None:
    tasks = json.loads(EXPORTS["label-studio"](run, suspects_of(run)).read_text())
    assert len(tasks) == 2
    assert tasks[1]["data"]["image"] == "/data/local-files/?d=photos/x/%C3%A4%202.png"
    assert tasks[1]["data"]["given_label"] == "a"
    (prediction,) = tasks[1]["predictions"]
    assert prediction["score"] == 0.75 and prediction["result"] == [
        {
            "from_name": "label",
            "to_name": "image",
            "type": "choices",
            "value": {"choices": ["b"]},
        }
    ]


def test_no_export_outlives_its_run(run: Run) -> None:
    write_verdicts_csv(run)
    write_unreadable(run.path, {})
    write_duplicates(run.path, [], synthetic())
    for export in EXPORTS.values():
        export(run, suspects_of(run))
    (run.path / "fiftyone" / "mine.txt").touch()
    RunWriter.create(run.path, {}, {}, overwrite=True)
    left = {file.relative_to(run.path).as_posix() for file in run.path.rglob("*")}
    assert left == {"config.json", "environment.json", "fiftyone", "fiftyone/mine.txt"}
    (run.path / "fiftyone" / "mine.txt").unlink()
    RunWriter.create(run.path, {}, {}, overwrite=True)
    assert not (run.path / "fiftyone").exists()


def test_names_that_are_no_utf8_reach_label_studio(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    try:
        (tmp_path / "data" / os.fsdecode(b"\xe9.png")).write_bytes(b"")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    run = write_run(tmp_path / "run", str(tmp_path / "data"), ["\\udce9.png", "2.png"], removed=1)
    tasks = json.loads(EXPORTS["label-studio"](run, suspects_of(run)).read_text())
    assert tasks[0]["data"]["image"] == "/data/local-files/?d=data/%E9.png"


def test_an_id_with_a_line_break_stays_one(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "x", ["a\n1.png", "b\u20282.png", "c.png"], removed=2)
    lines = EXPORTS["ids"](run, suspects_of(run)).read_text().splitlines()
    assert lines == [r"a\n1.png", r"b\u20282.png"]
    told = about_breaks(suspects_of(run))
    assert told is not None and told.startswith("2 ids contain line breaks, written as \\n in")
    assert about_breaks(run.verdicts[2:]) is None
