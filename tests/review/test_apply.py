from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from oddly.data import DataOptions, load_data, replace_labels
from oddly.errors import InputError
from oddly.records import Run
from oddly.review.apply import about_copies, read_outcome, write_labels
from oddly.review.session import Session
from tests.review.conftest import write_run


@pytest.fixture
def decided(run: Run) -> Run:
    session = Session(run)
    session.decide(0, "keep", None, 0)
    session.decide(1, "suggestion", None, 0)
    session.decide(2, "relabel", "cat", 0)
    session.decide(3, "remove", None, 0)
    session.decide(4, "skip", None, 0)
    session.undo(session.decide(5, "remove", None, 0).revision)
    session.decisions.close()
    return run


ROWS = [
    ["cat/0.png", "cat", "no", "person"],
    ["cat/3.png", "", "yes", "person"],
    ["dog/1.png", "emu", "no", "person"],
    ["emu/2.png", "cat", "no", "person"],
]


def test_the_table_says_what_was_decided(decided: Run) -> None:
    outcome = read_outcome(decided)
    assert outcome.counts == {"keep": 1, "suggestion": 1, "relabel": 1, "remove": 1, "skip": 1}
    path = write_labels(decided, outcome)
    assert path == decided.path / "labels.csv"
    with open(path, newline="") as file:
        assert list(csv.reader(file)) == [["id", "label", "remove", "decided_by"], *ROWS]
    parquet = write_labels(decided, outcome, decided.path / "l.parquet")
    assert pd.read_parquet(parquet).to_numpy().tolist() == ROWS


@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet"])
def test_training_reads_it(decided: Run, photos: Path, name: str) -> None:
    table = write_labels(decided, read_outcome(decided), decided.path / name)
    data = replace_labels(load_data(str(photos), DataOptions()), table)
    labels = dict(zip(data.train.ids, data.train.labels.tolist(), strict=True))
    assert "cat/3.png" not in labels and len(labels) == 8
    assert (labels["cat/0.png"], labels["dog/1.png"], labels["emu/2.png"]) == (0, 2, 0)
    assert data.decided is not None
    vouched = {id for id, sure in zip(data.train.ids, data.decided.tolist(), strict=True) if sure}
    assert vouched == {"cat/0.png", "dog/1.png", "emu/2.png"}


def test_the_next_round_keeps_what_the_one_before_decided(
    decided: Run, tmp_path: Path, photos: Path
) -> None:
    """Review, train on the labels, review again: the new table holds both rounds."""
    first = write_labels(decided, read_outcome(decided))
    second = write_run(tmp_path / "second", ["dog/1.png"], photos, labels=str(first))
    session = Session(second)
    session.decide(0, "relabel", "dog", 0)
    session.decisions.close()
    table = write_labels(second, read_outcome(second))
    with open(table, newline="") as file:
        assert list(csv.reader(file))[1:] == [
            *ROWS[:2],
            ["dog/1.png", "dog", "no", "person"],
            ROWS[3],
        ]
    first.unlink()
    with pytest.raises(InputError, match=r"cannot read .*labels\.csv: .*; this run used"):
        write_labels(second, read_outcome(second))


def test_an_earlier_table_of_nobody_in_particular_vouches_for_nothing(
    tmp_path: Path, photos: Path
) -> None:
    first = tmp_path / "first.csv"
    first.write_text("id,label\ncat/3.png,dog\ndog/1.png,emu\n")
    run = write_run(tmp_path / "second", ["dog/1.png"], photos, labels=str(first))
    session = Session(run)
    session.decide(0, "relabel", "dog", 0)
    session.decisions.close()
    with open(write_labels(run, read_outcome(run)), newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert rows == [["cat/3.png", "dog", "no", ""], ["dog/1.png", "dog", "no", "person"]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.csv", "ID;Class;Remove\ncat/3.png;dog;\ndog/1.png;emu;no\n"),
        ("l.csv", "path,label\n./cat/3.png,dog\ndog\\1.png,emu\n"),
        ("l.tsv", "path\tlabel\ncat/3.png\t dog\n dog/1.png\temu\n"),
        ("l.csv", '\ufeff"file","label"\r\n"cat/3.png","1"\r\n"dog/1.png","emu"\r\n'),
    ],
)
def test_an_earlier_table_may_be_whatever_labels_takes(
    tmp_path: Path, photos: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, newline="")
    run = write_run(tmp_path / "run", ["dog/1.png"], photos, labels=str(tmp_path / name))
    session = Session(run)
    session.decide(0, "relabel", "dog", 0)
    session.decisions.close()
    data = replace_labels(
        load_data(str(photos), DataOptions()), write_labels(run, read_outcome(run))
    )
    labels = dict(zip(data.train.ids, data.train.labels.tolist(), strict=True))
    assert (labels["cat/3.png"], labels["dog/1.png"]) == (1, 1) and "2 labels" in data.notes[0]


def test_an_earlier_table_lies_where_the_run_was_started(
    tmp_path: Path, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    frame = pd.DataFrame({"id": ["cat/3.png", "emu/2.png"], "label": [1.0, None]})
    frame.assign(remove=[False, True]).to_parquet(tmp_path / "there" / "l.parquet")
    monkeypatch.chdir(tmp_path / "there")
    run = write_run(tmp_path / "run", ["dog/1.png"], photos, labels="l.parquet")
    monkeypatch.chdir(tmp_path)
    session = Session(run)
    session.decide(0, "remove", None, 0)
    session.decisions.close()
    data = replace_labels(
        load_data(str(photos), DataOptions()), write_labels(run, read_outcome(run))
    )
    assert len(data.train) == 7 and "1 label read, 1 of them different" in data.notes[0]


def test_decisions_about_examples_of_another_run_stay_out(decided: Run, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", ["dog/1.png", "new.png"], "x")
    outcome = read_outcome(other, decided.path / "decisions.sqlite")
    assert outcome.labels == {"dog/1.png": "emu"} and outcome.removed == []


def test_pictures_that_still_bear_two_labels_are_counted(decided: Run) -> None:
    """cat/0 stays a cat, cat/3 is removed, emu/8 was kept: nobody was asked."""
    rows = ["1,cat/0.png,cat", "1,emu/8.png,emu", "2,cat/3.png,cat", "2,dog/7.png,dog"]
    lines = ["group,id,given_name,conflicting", *[f"{row},true" for row in rows], ""]
    outcome = read_outcome(decided)
    assert about_copies(decided, outcome) is None
    (decided.path / "duplicates.csv").write_text("\n".join(lines))
    told = about_copies(decided, outcome)
    assert told == "1 picture still has two labels; decide for all copies"
    both = replace(outcome, labels={**outcome.labels, "emu/8.png": "cat"})
    assert about_copies(decided, both) is None
    torn = about_copies(decided, replace(outcome, removed=[]))
    assert torn and torn.startswith("2 pictures still have two")


def test_nothing_decided(run: Run) -> None:
    with pytest.raises(InputError, match="no decisions yet; start with: oddly review"):
        read_outcome(run)
    session = Session(run)
    session.decide(0, "skip", None, 0)
    session.decisions.close()
    with pytest.raises(InputError, match="no decisions yet; continue with"):
        read_outcome(run)


def test_a_table_of_an_unknown_kind(decided: Run) -> None:
    with pytest.raises(InputError, match=r"\.csv or \.parquet"):
        write_labels(decided, read_outcome(decided), decided.path / "labels.txt")
