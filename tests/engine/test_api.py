from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import oddly
from oddly.data import synthetic
from oddly.engine import checkpoint
from oddly.errors import InputError
from tests.clean.conftest import write_pictures
from tests.interrupt import StopAfter

QUICK: dict[str, Any] = {"epochs": 3, "prune_after": 1, "percentile": 10}


def test_a_run_from_python(tmp_path: Path) -> None:
    run = oddly.train("synthetic", tmp_path / "run", noise=0.4, **QUICK)
    assert run.is_done and run.summary["percentile"] == 10
    assert run.config["noise"] == 0.4 and len(run.verdicts) == 120


def test_the_folder_is_named_after_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = oddly.train("synthetic", method="erm", epochs=1)
    other = oddly.train("synthetic", method="erm", epochs=1, seed=1)
    assert run.path.parent == Path("runs") and run.path.name.startswith("synthetic-erm-")
    assert other.path != run.path
    with pytest.raises(InputError, match="already contains a finished run"):
        oddly.train("synthetic", method="erm", epochs=1)


def test_what_needs_no_image_is_told_before_any_is_read(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()  # where images were read first, none would be found
    photos, table = str(tmp_path / "photos"), str(tmp_path / "labels.csv")
    with pytest.raises(InputError, match="unknown model 'resnt18'; did you mean 'resnet18'"):
        oddly.train(photos, tmp_path / "run", model="resnt18")
    with pytest.raises(InputError, match=r"labels\.csv does not exist"):
        oddly.train(photos, tmp_path / "run", labels=table)
    oddly.train("synthetic", tmp_path / "run", method="erm", epochs=1)
    with pytest.raises(InputError, match="already contains a finished run"):
        oddly.train(photos, tmp_path / "run")
    with pytest.raises(InputError, match="contains no images"):
        oddly.train(photos, tmp_path / "other", model="wrn-10-1")


def test_preset_and_what_overrides_it(tmp_path: Path) -> None:
    run = oddly.train("synthetic", tmp_path / "a", preset="paper", epochs=2)
    assert run.config["settings"]["statistic"] == "last" and run.summary["percentile"] == 10
    run = oddly.train("synthetic", tmp_path / "b", preset="paper", epochs=2, percentile=30)
    assert run.config["settings"]["statistic"] == "last" and run.summary["percentile"] == 30
    with pytest.raises(InputError, match="unknown preset 'papr'; did you mean 'paper'"):
        oddly.train("synthetic", tmp_path / "c", preset="papr")


def test_resume_needs_nothing_but_the_folder(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        oddly.train("synthetic", tmp_path, watcher=StopAfter(1), **QUICK)
    run = oddly.train(out=tmp_path, resume=True)
    assert run.is_done and len(run.metrics) == 3
    done_at = (tmp_path / "done").stat().st_mtime_ns
    assert oddly.train(out=tmp_path, resume=True).is_done  # once more does nothing
    assert (tmp_path / "done").stat().st_mtime_ns == done_at


def test_own_data_resumes_when_given_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    own = synthetic(num_classes=4, seed=3)
    with pytest.raises(KeyboardInterrupt):
        oddly.train(own, tmp_path, watcher=StopAfter(1), **QUICK)
    with pytest.raises(InputError, match="has changed since"):
        oddly.train(synthetic(num_classes=4, seed=4), tmp_path, resume=True)
    assert oddly.train(own, tmp_path, resume=True).summary["classes"] == 4


def test_resume_takes_the_same_options_and_no_others(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        oddly.train("synthetic", tmp_path, noise=0.4, watcher=StopAfter(1), **QUICK)
    for options in ({"epochs": 4}, {"noise": 0.2}, {"percentile": 20}, {"method": "erm"}):
        name = next(iter(options))
        with pytest.raises(InputError, match=f"was started with {name} = .*--resume cannot change"):
            oddly.train("synthetic", tmp_path, resume=True, **options)
    with pytest.raises(InputError, match="started with data = synthetic, not digits"):
        oddly.train("digits", tmp_path, resume=True)
    same = {**QUICK, "percentile": "10"}  # as `--set` would give it
    run = oddly.train("synthetic", tmp_path, resume=True, noise=0.4, device="cpu", **same)
    assert run.is_done


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing to train on"),
        ({"resume": True}, "--resume needs --out"),
        ({"data": "synthetic", "epochs": "many"}, "epochs must be int"),
        ({"data": "synthetic", "epochz": 3}, "unknown option 'epochz'; did you mean 'epochs'"),
        ({"data": "synthetic", "noise": "0.4"}, "noise must be float"),
        ({"data": "synthetic", "percentile": "ten"}, "must be float.*, got 'ten'"),
    ],
)
def test_what_python_gets_wrong_is_an_input_error(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        oddly.train(**options)
    assert not list(tmp_path.iterdir())


def test_resume_and_overwrite_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be used together"):
        oddly.train("synthetic", tmp_path, resume=True, overwrite=True)


def test_a_run_folder_inside_the_images_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = tmp_path / "photos"
    write_pictures(photos, 4)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(photos)
    refused = "is inside the images of .*; choose an --out folder somewhere else"
    for out in (photos, photos / "red" / "run", "run", None):
        for data in (photos, "."):
            with pytest.raises(InputError, match=refused):
                oddly.train(data, out, **QUICK)
    assert sorted(tmp_path.rglob("*")) == before
    (photos / "synthetic").mkdir()  # a dataset's name comes first, and its own data holds no files
    assert oddly.train("synthetic", "synthetic/run", method="erm", epochs=1).is_done
    rows = "".join(
        f"{file.relative_to(photos)},{file.parent.name}\n" for file in photos.rglob("*.png")
    )
    (photos / "table.csv").write_text(f"path,label\n{rows}")
    assert oddly.train("table.csv", "beside", method="erm", epochs=1).is_done
