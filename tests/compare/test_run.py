"""A comparison on tiny data: its folder, going on, and methods that cannot run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from oddly.compare import Plan, compare
from oddly.compare.cell import Cell, train_cell
from oddly.compare.run import Seen, Table
from oddly.engine.watch import Watcher
from oddly.errors import InputError
from oddly.records import FolderBusy, Run
from tests.clean.conftest import write_pictures
from tests.writers import another_writer

METHODS = ("erm", "gce", "dmi")
OPTIONS: dict[str, Any] = {"epochs": 2, "noise": 0.3, "device": "cpu", "batch_size": 5}


class StopAtThird(Watcher):
    """Ctrl-C in the middle of the third run."""

    def __init__(self) -> None:
        self.runs = 0

    def begin(self, title: str, folder: Path, epochs: int, finished: int) -> None:
        self.runs += 1

    def end_epoch(self, row: Mapping[str, Any]) -> None:
        if self.runs == 3:
            raise KeyboardInterrupt


class Count(Watcher):
    def __init__(self) -> None:
        self.folders: list[str] = []

    def begin(self, title: str, folder: Path, epochs: int, finished: int) -> None:
        self.folders.append(folder.name)


def test_it_goes_on_where_it_stopped_and_says_who_could_not_run(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        compare("synthetic", METHODS, tmp_path, seeds=2, watcher=StopAtThird(), **OPTIONS)
    assert (tmp_path / "compare.json").exists()
    counted = Count()
    done = compare("synthetic", METHODS, tmp_path, seeds=2, watcher=counted, **OPTIONS)
    assert counted.folders == ["erm-1", "gce-1"]  # the rest was there
    rows = {row["method"]: row for row in done.rows}
    assert list(rows) == list(METHODS)
    assert "every class in every batch" in rows["dmi"]["failure"] and rows["dmi"]["runs"] == 0
    summaries = [Run(tmp_path / f"gce-{seed}").summary for seed in (0, 1)]
    for name in ("test_accuracy", "seconds", "f1", "average_precision"):
        values = [summary[name] for summary in summaries]
        assert rows["gce"][name]["mean"] == pytest.approx(mean(values))
        assert rows["gce"][name]["std"] == pytest.approx(stdev(values))
    assert rows["erm"]["f1"]["mean"] is None  # keeping everything is no verdict
    assert rows["erm"]["cost"] == pytest.approx(1)
    seconds = [Run(tmp_path / f"erm-{seed}").summary["seconds"] for seed in (0, 1)]
    expected = rows["gce"]["seconds"]["mean"] / mean(seconds)
    assert rows["gce"]["cost"] == pytest.approx(expected)
    check_the_same_noise(tmp_path)
    assert done.result["left_out"] is None  # failed runs leave nothing to show
    more = compare("synthetic", ("erm", "elr"), tmp_path, seeds=1, **OPTIONS)
    assert [row["method"] for row in more.rows] == ["erm", "elr"]
    assert more.result["left_out"] == (
        "this folder also holds finished runs that are not shown (erm-1, gce-0, gce-1); to see them"
        " too, use --methods erm,elr,gce --seeds 2"
    )
    with pytest.raises(
        InputError, match="was started with epochs = 2, not 3; choose another --out"
    ):
        compare("synthetic", METHODS, tmp_path, seeds=2, **{**OPTIONS, "epochs": 3})


def check_the_same_noise(folder: Path) -> None:
    given = {
        name: Run(folder / name).verdicts["given_label"].tolist()
        for name in ("erm-0", "gce-0", "erm-1", "gce-1")
    }
    assert given["erm-0"] == given["gce-0"] != given["erm-1"] == given["gce-1"]


def test_a_folder_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and not a comparison"):
        compare("synthetic", ("erm",), tmp_path, **OPTIONS)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_when_nobody_can_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no method could run: dmi needs every class"):
        compare("synthetic", ("dmi",), tmp_path / "out", seeds=1, **OPTIONS)


def test_the_clock_stops_it(tmp_path: Path) -> None:
    options = {**OPTIONS, "data_dir": str(tmp_path)}
    past = compare("synthetic", ("erm",), tmp_path / "out", seeds=2, deadline=0.0, **options)
    assert past.rows == [] and past.result["missing"] == 2
    text = (past.path / "compare.json").read_text()
    assert str(tmp_path) not in text and '"device": "cpu"' not in text.split('"environment"')[0]
    # An epoch is begun, and the second would end too late: it is saved and goes on.
    begun = train_cell(
        Cell("erm", 0), Plan("synthetic", ("erm",), 2, 2, False, options), past.path, deadline=0.0
    )
    assert begun.stopped and len(Run(past.path / "erm-0").metrics) == 1
    counted = Count()
    options = {**OPTIONS, "data_dir": "elsewhere"}  # where it runs may change
    done = compare("synthetic", ("erm",), past.path, seeds=2, watcher=counted, **options)
    assert counted.folders == ["erm-0", "erm-1"] and done.result["missing"] == 0
    whole = compare("synthetic", ("erm",), tmp_path / "whole", seeds=2, **OPTIONS)
    assert whole.rows[0]["test_accuracy"] == done.rows[0]["test_accuracy"]


def test_it_holds_its_settings(tmp_path: Path) -> None:
    settings = {"gce": {"q": 0.5}}
    options = {**OPTIONS, "settings": settings}
    done = compare("synthetic", ("gce",), tmp_path, seeds=1, **options)
    assert done.rows[0]["settings"]["q"] == 0.5
    training = done.result["training"]
    assert training["batch_size"] == 5 and training["model"] and "device" not in training
    with pytest.raises(InputError, match=r"was started with gce.q = 0.5, not 0.6; choose another"):
        compare("synthetic", ("gce",), tmp_path, **{**options, "settings": {"gce": {"q": 0.6}}})
    with pytest.raises(InputError, match=r"was started with noise = 0.3, not 0.2; choose another"):
        compare("synthetic", ("gce",), tmp_path, **{**options, "noise": 0.2})


def test_the_doubts_about_any_method_are_told(tmp_path: Path) -> None:
    done = compare("synthetic", ("erm", "gce"), tmp_path, seeds=1, **{**OPTIONS, "epochs": 1})
    erm, gce = done.rows
    assert gce["removed_fraction"]["mean"] > 0.5 and erm["doubt"] is None
    assert gce["doubt"].startswith("1 of 1 verdict: More than half of the examples are removed:")


def test_what_a_run_may_take(tmp_path: Path) -> None:
    plan = Plan("synthetic", ("erm", "luo"), 1, 2, False, OPTIONS)
    table = Table(tmp_path, plan, Seen("any"))
    assert table.expect(Cell("luo", 0)) == 0  # nobody knows yet
    compare("synthetic", ("erm",), tmp_path, seeds=1, **OPTIONS)
    table.write()
    seconds = Run(tmp_path / "erm-0").summary["seconds"]
    assert table.expect(Cell("luo", 0)) == pytest.approx(2 * seconds)


def test_another_writer_is_no_fault_of_the_method(tmp_path: Path) -> None:
    compare("synthetic", ("gce",), tmp_path, seeds=1, **OPTIONS)
    for busy in (tmp_path, tmp_path / "erm-0"):
        with (
            another_writer(busy),
            pytest.raises(FolderBusy, match=f"^another process .* is writing to {busy};"),
        ):
            compare("synthetic", ("gce", "erm"), tmp_path, seeds=1, **OPTIONS)
    done = compare("synthetic", ("gce", "erm"), tmp_path, seeds=1, **OPTIONS)
    assert [row["failure"] for row in done.rows] == [None, None]


def test_nothing_is_written_among_the_images(tmp_path: Path) -> None:
    write_pictures(tmp_path, 4)
    with pytest.raises(InputError, match="is inside the images of .*; choose an --out"):
        compare(str(tmp_path), ("erm",), tmp_path / "compared")
    assert not (tmp_path / "compared").exists()


def test_the_same_folder_may_be_spelt_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell that completes names adds a slash."""
    write_pictures(tmp_path / "photos", 20)
    monkeypatch.chdir(tmp_path)
    for spelling in ("photos/", "photos", str(tmp_path / "photos")):
        done = compare(spelling, ["erm"], tmp_path / "out", seeds=1, epochs=1, device="cpu")
        assert done.rows[0]["runs"] == 1
    with pytest.raises(InputError, match="was started with data = .*, not digits; choose another"):
        compare("digits", ["erm"], tmp_path / "out", seeds=1, epochs=1, device="cpu")


def test_a_comparison_goes_on_from_elsewhere_with_the_same_images_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"seeds": 1, "epochs": 1, "device": "cpu"}
    for place in ("here", "there"):
        write_pictures(tmp_path / place / "photos", 20)
    monkeypatch.chdir(tmp_path / "here")
    compare("photos", ["erm"], tmp_path / "out", **options)
    monkeypatch.chdir(tmp_path / "there")
    with pytest.raises(
        InputError, match="was started with data = .*here/photos, not .*there/photos"
    ):
        compare("photos", ["erm", "gce"], tmp_path / "out", **options)
    assert not (tmp_path / "out/gce-0").exists()
    done = compare("../here/photos", ["erm", "gce"], tmp_path / "out", **options)
    assert [row["runs"] for row in done.rows] == [1, 1]
    monkeypatch.chdir(tmp_path)  # nothing to train: the plan names another path than any run
    compare("here/photos", ["erm", "gce"], tmp_path / "out", **options)
    monkeypatch.chdir(tmp_path / "there")
    compare("../here/photos", ["erm", "gce"], tmp_path / "out", **options)
    write_pictures(tmp_path / "here/photos", 21)
    with pytest.raises(
        InputError, match="photos has changed since .*out was started: other examples or"
    ):
        compare("../here/photos", ["erm", "gce"], tmp_path / "out", **options)


def test_figures_by_labels_that_may_be_wrong_themselves_say_so(tmp_path: Path) -> None:
    """The truth that is planted into is a folder's given labels; synthetic knows its own."""
    write_pictures(tmp_path / "photos", 20)
    options = {**OPTIONS, "image_size": 8, "epochs": 1}
    done = compare(str(tmp_path / "photos"), ("gce",), tmp_path / "out", seeds=1, **options)
    assert done.rows[0]["average_precision"]["mean"] is not None
    assert done.result["caveat"] == (
        "test accuracy is measured on the given labels of 6 held-out images, including wrong ones;"
        " precision, recall, F1 and AP take the labels before --noise for true, so finding one that"
        " was wrong already counts as a false alarm"
    )
    known = compare("synthetic", ("gce",), tmp_path / "known", seeds=1, **OPTIONS)
    assert known.result["caveat"] is None


def test_a_table_of_labels_may_be_spelt_otherwise_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pictures(tmp_path / "photos", 20)
    (tmp_path / "fix.csv").write_text("id,label\nred/red0.png,blue\n")
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"seeds": 1, "epochs": 1, "device": "cpu"}
    compare("photos", ["erm"], "out", labels="fix.csv", **options)
    monkeypatch.chdir(tmp_path / "photos")
    compare(".", ["erm", "gce"], "../out", labels="../fix.csv", **options)
    (tmp_path / "photos/other.csv").write_text("id,label\nred/red1.png,blue\n")
    with pytest.raises(InputError, match="was started with labels = .*fix.csv, not .*other.csv"):
        compare(".", ["erm", "gce"], "../out", labels="other.csv", **options)


def test_what_needs_no_image_is_told_before_any_is_read(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()  # where images were read first, none would be found
    photos, out = str(tmp_path / "photos"), tmp_path / "out"
    with pytest.raises(InputError, match="unknown method 'ood'; did you mean 'odd'"):
        compare(photos, ["ood"], out)
    with pytest.raises(InputError, match="unknown setting of gce 'p'"):
        compare(photos, ["gce"], out, settings={"gce": {"p": "0.5"}})
    with pytest.raises(InputError, match="unknown model 'resnt18'"):
        compare(photos, ["erm"], out, model="resnt18")
    assert not out.exists()
