from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from oddly.data import LabelledData, replace_labels, synthetic
from oddly.errors import InputError


@pytest.fixture
def data() -> LabelledData:
    """Four examples of the classes cat, dog, 0: the last one's name is another's number."""
    made = synthetic(num_classes=3, per_class=2)
    made = replace(made, class_names=["cat", "dog", "0"])
    return made.with_given_labels(torch.tensor([0, 0, 1, 1, 2, 2]))


def write(folder: Path, text: str) -> Path:
    (folder / "labels.csv").write_text(text)
    return folder / "labels.csv"


def test_by_name_and_by_number(data: LabelledData, tmp_path: Path) -> None:
    file = write(tmp_path, "id,label\ntrain/00005,dog\ntrain/00000,1\ntrain/00001,0\n")
    changed = replace_labels(data, file)
    # "0" is the name of class 2 before it is the number of class 0
    assert changed.train.labels.tolist() == [1, 2, 1, 1, 2, 1]
    assert data.train.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert changed.true_labels is data.true_labels
    assert changed.notes == ("labels.csv: 3 labels read, 3 of them different",)


def test_where_classes_are_numbers_no_other_number_is_one(
    data: LabelledData, tmp_path: Path
) -> None:
    """Class 0 of those called 1, 2 and 10 would else be 1, and a slip a wrong label."""
    data = replace(data, class_names=["1", "2", "10"])
    changed = replace_labels(data, write(tmp_path, "id,label\ntrain/00000,10\ntrain/00001,2\n"))
    assert changed.train.labels.tolist() == [2, 1, 1, 1, 2, 2]
    with pytest.raises(InputError, match=r"not a class name \(classes: 1, 2, 10\): '0' of train"):
        replace_labels(data, write(tmp_path, "id,label\ntrain/00003,0\n"))


def test_parquet_with_other_columns(data: LabelledData, tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": [1, 1], "x": [0, 0], "id": ["train/00002", "train/00004"]})
    frame.to_parquet(tmp_path / "l.parquet")
    changed = replace_labels(data, tmp_path / "l.parquet")
    assert changed.train.labels.tolist() == [0, 0, 1, 1, 1, 2]
    assert changed.notes[-1].endswith("2 labels read, 1 of them different")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "id,label\na,dog\ntrain/00001,dog\nb,dog\n",
            "2 of 3 ids are not in .*: a, b .*train/00000",
        ),
        ("id,label\ntrain/00001,dgo\n", "1 label neither .*'dgo' of train/00001"),
        ("id,label\ntrain/00001,3\n", r"0\.\.2: '3' of train/00001"),
        ("id,label\ntrain/00001,-1\n", "'-1' of train/00001"),
        ("id,label\ntrain/00001,dog\ntrain/00001,cat\n", "train/00001 two different labels"),
        ("id,label\ntrain/00001,\n", "1 row without a label"),
        ("id,label\n", "has no rows"),
        ("id,name\na,b\n", "has no column label"),
        ("", "is empty"),
    ],
)
def test_bad_tables(data: LabelledData, tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        replace_labels(data, write(tmp_path, text))


def test_bad_files(data: LabelledData, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.csv does not exist"):
        replace_labels(data, tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match=r"is not a \.csv or"):
        replace_labels(data, tmp_path)
    (tmp_path / "l.txt").write_text("id,label\n")
    with pytest.raises(InputError, match=r"l\.txt is not a \.csv"):
        replace_labels(data, tmp_path / "l.txt")


def test_the_same_row_twice_is_no_contradiction(data: LabelledData, tmp_path: Path) -> None:
    text = "id,label\ntrain/00000,dog\ntrain/00000,dog\n"
    assert replace_labels(data, write(tmp_path, text)).train.labels[0] == 1


def test_labels_that_a_person_decided(data: LabelledData, tmp_path: Path) -> None:
    """Kept, changed and removed ones; what a model decided is vouched for by nobody."""
    rows = ("train/00000,cat,no,person", "train/00001,,yes,person", "train/00002,cat,no,Person")
    rows += ("train/00003,dog,no,model", "train/00004,0,no,")
    header = "id,label,remove,decided_by\n"
    changed = replace_labels(data, write(tmp_path, header + "\n".join(rows) + "\n"))
    assert changed.decided is not None
    assert changed.decided.tolist() == [True, True, False, False, False]
    assert changed.notes[0].endswith("; 2 labels set by a person, left unchanged")
    assert replace_labels(data, write(tmp_path, "id,label\ntrain/00000,1\n")).decided is None


def test_removed_examples_are_left_out(data: LabelledData, tmp_path: Path) -> None:
    file = write(
        tmp_path, "id,label,remove\ntrain/00000,,yes\ntrain/00004,,1\ntrain/00001,dog,no\n"
    )
    changed = replace_labels(data, file)
    assert changed.train.ids == ["train/00001", "train/00002", "train/00003", "train/00005"]
    assert changed.train.labels.tolist() == [1, 1, 1, 2]
    assert isinstance(changed.train.images, torch.Tensor) and data.true_labels is not None
    assert torch.equal(changed.train.images, data.train.images[[1, 2, 3, 5]])  # type: ignore[index]
    assert torch.equal(changed.true_labels, data.true_labels[[1, 2, 3, 5]])  # type: ignore[arg-type]
    assert changed.notes == ("labels.csv: 1 label read, 1 of them different; 2 examples removed",)
    assert len(data.train) == 6


def test_removed_examples_of_files_decoded_when_asked_for(
    data: LabelledData, tmp_path: Path
) -> None:
    kept = data.train.images

    class OnDisk(torch.utils.data.Dataset[torch.Tensor]):
        def __getitem__(self, index: int) -> torch.Tensor:
            return kept[index]

    lazy = replace(data, train=replace(data.train, images=OnDisk()))
    changed = replace_labels(lazy, write(tmp_path, "id,label,remove\ntrain/00000,,TRUE\n"))
    assert len(changed.train) == 5 and torch.equal(changed.train.images[0], kept[1])


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("train/00001,dog,maybe", "column remove must be yes or no, got 'maybe'"),
        ("train/00001,,no", "1 row without a label, first row 1"),
        ("train/00001,,yes\ntrain/00001,dog,no", "train/00001 two different labels"),
        ("\n".join(f"train/0000{i},,yes" for i in range(6)), "removes every training example"),
    ],
)
def test_bad_removals(data: LabelledData, tmp_path: Path, rows: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        replace_labels(data, write(tmp_path, f"id,label,remove\n{rows}\n"))


@pytest.mark.parametrize("rest", ["cat,no", ",yes"])
def test_one_class_is_not_enough(data: LabelledData, tmp_path: Path, rest: str) -> None:
    """Trained all the same, each of its images would be judged by nothing."""
    rows = "".join(f"train/0000{i},{rest}\n" for i in range(2, 6))
    with pytest.raises(InputError, match=r"leaves one class only \(cat\), two are needed"):
        replace_labels(data, write(tmp_path, f"id,label,remove\n{rows}"))


def test_classes_that_differ_in_a_blank_stay_apart(tmp_path: Path) -> None:
    data = replace(synthetic(), class_names=["cat", "cat ", " dog"])
    ids = data.train.ids
    table = tmp_path / "l.csv"
    table.write_text(f"id,label\n{ids[0]},cat \n{ids[1]}, dog\n {ids[2]} , cat\n")
    labels = replace_labels(data, table).train.labels.tolist()
    assert labels[:3] == [1, 2, 0]


def test_decisions_on_files_that_are_gone_are_passed_over(
    data: LabelledData, tmp_path: Path
) -> None:
    header = "id,label,remove,decided_by\n"
    kept = "train/00000,dog,no,person\n"
    changed = replace_labels(data, write(tmp_path, f"{header}gone.png,dgo,no,person\n{kept}"))
    assert changed.train.labels.tolist() == [1, 0, 1, 1, 2, 2]
    assert changed.decided is not None and changed.decided.tolist() == [True] + 5 * [False]
    assert changed.notes == (
        "labels.csv: 1 of 2 ids is not in the training data: gone.png; ignored",
        "labels.csv: 1 label read, 1 of them different; 1 label set by a person, left unchanged",
    )
    other = "".join(f"gone/{i}.png,dog,no,person\n" for i in range(2))
    with pytest.raises(InputError, match="2 of 3 ids are not in .*; remove those rows, or use"):
        replace_labels(data, write(tmp_path, header + other + kept))
    by_hand = "id,label\ntrain/00000,dog\ngone.png,dog\n"
    with pytest.raises(
        InputError, match="1 of 2 ids is not in the training data: gone.png .its ids"
    ):
        replace_labels(data, write(tmp_path, by_hand))


def test_images_that_cannot_be_read_may_stand_in_the_table(
    data: LabelledData, tmp_path: Path
) -> None:
    data = replace(data, unread=["train/torn"], closed={"lost/": "permission denied"})
    rows = "./train/torn,cat\nlost/found,dog\n"
    changed = replace_labels(data, write(tmp_path, f"id,label\n{rows}train/00000,dog\n"))
    assert changed.train.labels.tolist() == [1, 0, 1, 1, 2, 2]
    assert changed.notes[-1] == "labels.csv: 1 label read, 1 of them different"
    same = replace_labels(data, write(tmp_path, f"id,label\n{rows}"))
    assert same.train.labels.tolist() == data.train.labels.tolist()
    with pytest.raises(InputError, match="not in the training data: train/gone"):
        replace_labels(data, write(tmp_path, f"id,label\n{rows}train/gone,dog\n"))
