from __future__ import annotations

from pathlib import Path

import numpy as np

from oddly.records import Run, RunWriter, choose_pictured
from oddly.records.thumbnails import HIGHEST, KEPT, MOST_SUSPECTS


def test_suspects_come_by_score_and_kept_ones_are_others() -> None:
    keep = np.asarray([True, False, False, True, False])
    scores = np.asarray([9.0, 2.0, 5.0, np.nan, 5.0])
    suspects, kept = choose_pictured(keep, scores)
    assert suspects.tolist() == [2, 4, 1]
    assert kept.tolist() == [0, 3]


def test_copies_of_one_picture_come_first_side_by_side() -> None:
    keep = np.asarray([False, False, False, False, True, False])
    scores = np.asarray([9.0, 2.0, np.nan, 7.0, 8.0, 3.0])
    copies = np.asarray([0, 1, 2, 2, 1, 0])  # one of picture 1 was decided, and is kept
    assert choose_pictured(keep, scores, copies)[0].tolist() == [1, 3, 2, 0, 5]


def test_without_suspects_the_highest_scores_are_shown() -> None:
    scores = np.arange(1000.0)
    scores[500] = np.nan
    suspects, kept = choose_pictured(np.ones(1000), scores)
    assert suspects.tolist() == list(range(999, 999 - HIGHEST, -1))
    assert len(kept) == KEPT and not set(kept) & set(suspects)


def test_the_choice_is_bounded_and_always_the_same() -> None:
    keep = np.arange(20_000) % 2 == 0
    scores = np.random.default_rng(1).normal(size=20_000)
    suspects, kept = choose_pictured(keep, scores)
    assert len(suspects) == MOST_SUSPECTS and not keep[suspects].any()
    assert scores[suspects[-1]] >= np.sort(scores[~keep])[-MOST_SUSPECTS]
    assert len(set(kept)) == KEPT and keep[kept].all()
    again = choose_pictured(keep, scores)
    assert all(np.array_equal(a, b) for a, b in zip(again, (suspects, kept), strict=True))


def test_thumbnails_read_back(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, {}, {})
    assert Run(tmp_path).thumbnails == {}
    writer.write_thumbnails({7: b"seven", 2: b"two"})
    assert Run(tmp_path).thumbnails == {7: b"seven", 2: b"two"}
    RunWriter.create(tmp_path, {}, {}, overwrite=True)
    assert Run(tmp_path).thumbnails == {}


def test_where_image_files_lie(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "labels.csv").write_text("path,label\n")

    def root(data: str | None, folder: Path | None) -> Path | None:
        around = {} if folder is None else {"folder": str(folder)}
        RunWriter.create(tmp_path / "run", {"data": data}, around, overwrite=True)
        return Run(tmp_path / "run").data_root

    assert root("photos", tmp_path) == tmp_path / "photos"
    assert root("photos/labels.csv", tmp_path) == tmp_path / "photos"
    assert root(str(tmp_path / "photos"), None) == tmp_path / "photos"
    assert root("gone", tmp_path) is None
    assert root(None, tmp_path) is None
    assert root("photos\0", tmp_path) is None
