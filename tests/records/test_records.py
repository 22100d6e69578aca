from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oddly.errors import InputError
from oddly.records import (
    FORMAT_VERSION,
    Run,
    RunWriter,
    VerdictTable,
    config_hash,
    environment,
    score_verdict,
    write_atomic,
    write_json,
)

CONFIG = {"method": "odd", "epochs": 4}


def make_table(n: int = 4, **changes: Any) -> VerdictTable:
    values: dict[str, Any] = {
        "ids": [f"train/{i}" for i in range(n)],
        "given_labels": np.arange(n) % 2,
        "losses": np.linspace(0, 3, n),
        "scores": np.linspace(0, 1, n),
        "counterfactual_percentiles": np.linspace(0, 100, n),
        "threshold": 2.5,
        "keep": np.linspace(0, 3, n) < 2.5,
        "suggested_labels": np.ones(n, dtype=np.int64),
        "suggested_confidences": np.full(n, 0.75),
        "class_names": ["cat", "dog"],
    }
    return VerdictTable(**{**values, **changes})


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """As good as a full disk: the kernel takes bytes up to the limit, then refuses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def files_in(path: Path) -> list[str]:
    return sorted(os.listdir(path))


def test_write_atomic_replaces_a_file(tmp_path: Path) -> None:
    for content in ("old", b"new"):
        write_atomic(tmp_path / "a", content)
    assert ((tmp_path / "a").read_bytes(), files_in(tmp_path)) == (b"new", ["a"])


def test_write_atomic_on_a_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "old")
    with file_size_limit(1000), pytest.raises(OSError) as told:
        write_atomic(tmp_path / "a", "x" * 5000)
    assert told.value.filename == str(tmp_path / "a")  # the system itself names none
    with pytest.raises(OSError) as told:
        write_atomic(tmp_path / "missing" / "a", "new")
    assert told.value.filename == str(tmp_path / "missing" / "a")  # nor the one in the making
    assert (tmp_path / "a").read_text() == "old"
    assert files_in(tmp_path) == ["a"]


def test_write_json_turns_everything_into_plain_json(tmp_path: Path) -> None:
    value = {
        "nan": float("nan"),
        "list": [np.float32("inf"), np.int64(3), (True, None)],
        "array": np.asarray([1.5, np.nan]),
        7: Path("a/b"),
    }
    write_json(tmp_path / "a.json", value)
    plain = {"nan": None, "list": [None, 3, [True, None]], "array": [1.5, None], "7": "a/b"}
    assert json.loads((tmp_path / "a.json").read_text()) == plain


def test_verdict_columns_and_types() -> None:
    table = make_table().to_arrow()
    names = pa.dictionary(pa.int32(), pa.string())
    columns = {"index": pa.int64(), "id": pa.string(), "given_label": pa.int32()}
    columns |= {"given_name": names, "loss": pa.float32(), "score": pa.float32()}
    columns |= {"counterfactual_percentile": pa.float32(), "threshold": pa.float32()}
    columns |= {"keep": pa.bool_(), "suggested_label": pa.int32(), "suggested_name": names}
    columns |= {"suggested_confidence": pa.float32()}
    found = zip(table.schema.names, table.schema.types, strict=True)
    assert list(found) == list(columns.items())
    assert table.column("index").to_pylist() == [0, 1, 2, 3]
    assert table.column("given_name").to_pylist() == ["cat", "dog", "cat", "dog"]
    assert table.column("threshold").to_pylist() == [2.5] * 4


def test_absent_values_are_null() -> None:
    table = make_table(
        losses=np.asarray([0, np.nan, 1, 2]),
        counterfactual_percentiles=None,
        threshold=None,
        suggested_labels=np.asarray([-1, 0, 1, 2]),
    ).to_arrow()
    assert table.column("loss").to_pylist() == [0, None, 1, 2]
    assert table.column("counterfactual_percentile").null_count == 4
    assert table.column("threshold").null_count == 4
    assert table.column("suggested_name").to_pylist() == [None, "cat", "dog", None]


def test_two_classes_of_one_name_and_a_file_name_that_is_not_utf8(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, CONFIG, {})
    ids = ["a", "b\udcff", "c", "d"]
    labels = np.asarray([0, 1, 2, 1])
    table = make_table(ids=ids, given_labels=labels, class_names=["crane", "dog", "crane"])
    writer.write_verdicts(table)
    verdicts = Run(tmp_path).verdicts
    assert verdicts["given_name"].dtype == "category"
    assert list(verdicts["given_name"]) == ["crane", "dog", "crane", "dog"]
    assert list(verdicts["given_label"]) == [0, 1, 2, 1]
    assert list(verdicts["id"]) == ["a", "b\\udcff", "c", "d"]


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        make_table(losses=np.zeros(3)).to_arrow()


def test_a_million_verdicts_survive_the_round_trip(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, CONFIG, {})
    writer.write_verdicts(make_table(1_000_000))
    verdicts = Run(tmp_path).verdicts
    assert len(verdicts) == 1_000_000
    assert verdicts["id"].iloc[-1] == "train/999999"
    assert not verdicts["keep"].iloc[-1]


def test_scores_worked_by_hand() -> None:
    # removed: 0, 1, 2; mislabelled: 0, 2, 4 -> two hits
    keep = np.asarray([False, False, False, True, True])
    mislabelled = np.asarray([True, False, True, False, True])
    scores = np.asarray([0.9, 0.8, 0.7, 0.6, np.nan])  # without a score: ranked last
    found = score_verdict(keep, scores, mislabelled)
    # wrong ones come at ranks 1, 3 and 5: (1/1 + 2/3 + 3/5) / 3
    expected = {"precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3, "average_precision": 34 / 45}
    assert found == pytest.approx(expected)


def test_scores_that_are_not_defined() -> None:
    scores, yes, no = np.arange(2.0), np.ones(2, np.bool_), np.zeros(2, np.bool_)
    nothing_removed = score_verdict(keep=yes, scores=scores, mislabelled=~no)
    assert nothing_removed["precision"] is None
    assert nothing_removed["recall"] == nothing_removed["f1"] == 0
    nothing_wrong = score_verdict(keep=no, scores=scores, mislabelled=no)
    assert nothing_wrong["precision"] == nothing_wrong["f1"] == 0
    assert nothing_wrong["recall"] is nothing_wrong["average_precision"] is None
    assert set(score_verdict(keep=yes, scores=scores, mislabelled=no).values()) == {None}


def test_config_hash_sees_values_and_not_their_order() -> None:
    # sha256 of {"a":1,"b":"x"}, cut to 12 digits
    assert config_hash({"a": 1, "b": "x"}) == "ecf9e98ec064"
    assert config_hash({"b": Path("x"), "a": np.int64(1), "format": 1}) == "ecf9e98ec064"
    assert config_hash({"a": 2, "b": "x"}) != config_hash({"a": 1, "b": "x"})


def test_environment_names_versions_without_importing_torch() -> None:
    code = (
        "import sys, oddly.records as r; e = r.environment({'device': 'cpu'});"
        "assert 'torch' not in sys.modules; assert e['device'] == 'cpu';"
        "assert e['packages']['numpy'] and e['python'] and e['cpu_model'] and e['cpu_count']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def fill(path: Path) -> RunWriter:
    writer = RunWriter.create(path, CONFIG, environment())
    for epoch in (1, 2, 3, 4):
        writer.append_metrics({"epoch": epoch, "test_accuracy": 50.0 + epoch, "lr": np.nan})
    writer.write_verdicts(make_table())
    writer.write_truth(np.asarray([0, 0, 1, 1]), ["cat", "dog"], np.asarray([0, 1, 0, 1]))
    writer.write_counterfactual({"draws": 10})
    return writer


def test_a_finished_run_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one"
    fill(path).finish({"method": "odd", "test_accuracy": 54.0})
    run = Run(path)
    assert run.config == {**CONFIG, "format": FORMAT_VERSION}
    assert run.is_done
    assert run.metrics[0] == {"epoch": 1, "test_accuracy": 51.0, "lr": None}
    assert run.counterfactual == {"draws": 10}
    assert run.truth is not None
    assert list(run.truth.columns) == ["index", "true_label", "true_name", "mislabelled"]
    assert list(run.truth["true_name"]) == ["cat", "cat", "dog", "dog"]
    assert list(run.truth["mislabelled"]) == [False, True, True, False]
    assert run.test_accuracy == 54.0
    assert repr(run) == f"Run('{path}': odd, finished, test accuracy 54.00 %)"


def test_a_running_folder_reads_too(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, CONFIG, {})
    run = Run(tmp_path)
    assert (run.is_done, run.metrics, run.summary) == (False, [], {})
    assert run.truth is None and run.counterfactual is None
    assert run.test_accuracy is None
    with pytest.raises(InputError, match="no verdicts yet"):
        _ = run.verdicts
    # the last tested epoch counts, not the best
    for row in ({"test_accuracy": 90}, {"test_accuracy": 80}, {"test_accuracy": None}):
        writer.append_metrics(row)
    assert run.test_accuracy == 80
    assert "unfinished, 3 epochs" in repr(run)


def test_a_torn_last_row_is_left_out_and_mended(tmp_path: Path) -> None:
    fill(tmp_path).finish({})
    with open(tmp_path / "metrics.jsonl", "ab") as file:
        file.write(b'{"epoch": 5, "test_acc')
    assert [row["epoch"] for row in Run(tmp_path).metrics] == [1, 2, 3, 4]
    (tmp_path / ".config.json.1.oddly-tmp").touch()
    writer = RunWriter.reopen(tmp_path, epoch=2)
    writer.append_metrics({"epoch": 3})
    assert [row["epoch"] for row in Run(tmp_path).metrics] == [1, 2, 3]
    assert not Run(tmp_path).is_done
    assert not any(name.endswith(".oddly-tmp") for name in files_in(tmp_path))


def test_a_bad_row_in_the_middle_is_told(tmp_path: Path) -> None:
    RunWriter.create(tmp_path, CONFIG, {})
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1}\n{"ep\n{"epoch": 3}\n')
    with pytest.raises(InputError, match="line 2"):
        _ = Run(tmp_path).metrics


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    writer = fill(tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}
    with file_size_limit(len(before["metrics.jsonl"]) + 5):
        with pytest.raises(OSError):
            writer.append_metrics({"epoch": 5})
        with pytest.raises(OSError):
            writer.write_verdicts(make_table(1000))
        with pytest.raises(OSError):
            writer.finish({"text": "x" * 5000})
    assert {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)} == before


def test_create_refuses_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "run"
    writer = fill(path)
    with pytest.raises(
        InputError, match=r"pass --resume \(resume=True\) to continue it, or --overw"
    ):
        RunWriter.create(path, CONFIG, {})
    writer.finish({})
    with pytest.raises(InputError, match=r"or pass --overwrite \(in Python overwrite=True\)"):
        RunWriter.create(path, CONFIG, {})
    (path / "mine.txt").touch()
    RunWriter.create(path, CONFIG, {}, overwrite=True)
    assert files_in(path) == ["config.json", "environment.json", "mine.txt"]


@pytest.mark.parametrize("name", ["holiday.jpg", "config.json"])
def test_create_never_touches_other_folders(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"format": "png"}')
    for overwrite in (False, True):
        with pytest.raises(InputError, match="not a run folder; choose another --out"):
            RunWriter.create(tmp_path, CONFIG, {}, overwrite=overwrite)
    with pytest.raises(InputError, match="is a file"):
        RunWriter.create(tmp_path / name, CONFIG, {}, overwrite=True)
    assert files_in(tmp_path) == [name]


def test_run_says_why_a_folder_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder; expected a folder"):
        Run(tmp_path / "nothing")
    with pytest.raises(InputError, match="not a run folder; expected a folder"):
        Run(tmp_path)
    write_json(tmp_path / "config.json", {"format": FORMAT_VERSION + 1})
    with pytest.raises(InputError, match="run format 2, but this version of oddly reads 1"):
        Run(tmp_path)
    with pytest.raises(InputError, match="run format 2"):
        RunWriter.reopen(tmp_path, 1)


def test_a_cut_off_parquet_file_is_one_clear_line(tmp_path: Path) -> None:
    fill(tmp_path)
    content = (tmp_path / "verdicts.parquet").read_bytes()
    for part in (b"", content[:10], content[: len(content) // 2], content[:-1], b"x" * 500):
        (tmp_path / "verdicts.parquet").write_bytes(part)
        with pytest.raises(InputError, match="verdicts.parquet: cannot be read") as error:
            _ = Run(tmp_path).verdicts
        assert "\n" not in str(error.value)
