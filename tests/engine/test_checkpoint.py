from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from oddly.data import synthetic
from oddly.engine import checkpoint
from oddly.engine.checkpoint import Checkpointer, fingerprint, load_checkpoint
from oddly.errors import InputError


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    state = {"finished": 3, "weights": torch.arange(4.0), "nested": {"none": None}}
    Checkpointer(tmp_path).save(state)
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None and loaded["finished"] == 3 and loaded["nested"] == {"none": None}
    assert torch.equal(loaded["weights"], state["weights"])
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.pt"]


def test_at_most_once_a_minute_unless_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: clock[0])
    checkpointer = Checkpointer(Path("nowhere"))
    clock[0] += 59
    assert not checkpointer.due() and checkpointer.due(urgent=True)
    clock[0] += 2
    assert checkpointer.due()


def test_saving_starts_the_minute_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: clock[0])
    checkpointer = Checkpointer(tmp_path)
    clock[0] += 61
    checkpointer.save({})
    assert not checkpointer.due()


def test_what_takes_long_is_saved_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two seconds of saving are a hundredth of 200."""
    clock = [1000.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(checkpoint.torch, "save", lambda *_: clock.append(clock.pop() + 2))
    checkpointer = Checkpointer(tmp_path)
    checkpointer.save({})
    clock[0] += 199
    assert not checkpointer.due() and checkpointer.due(urgent=True)
    clock[0] += 1
    assert checkpointer.due()


def test_none_before_the_first(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04 cut short"])
def test_a_damaged_file_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "checkpoint.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"checkpoint\.pt cannot be read .*--overwrite$") as caught:
        load_checkpoint(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_file_of_something_else_is_one_clear_line(tmp_path: Path) -> None:
    torch.save(torch.zeros(3), tmp_path / "checkpoint.pt")
    with pytest.raises(InputError, match=r"checkpoint\.pt cannot be read .*--overwrite$"):
        load_checkpoint(tmp_path)


def test_a_failed_save_leaves_the_old_one(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path)
    checkpointer.save({"finished": 1})
    with pytest.raises(AttributeError):  # something that cannot be pickled
        checkpointer.save({"finished": lambda: None})
    assert load_checkpoint(tmp_path) == {"finished": 1}


def test_remove_is_content_with_nothing(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path)
    checkpointer.remove()
    checkpointer.save({})
    checkpointer.remove()
    assert not list(tmp_path.iterdir())


def test_fingerprint_tells_labels_and_examples_apart() -> None:
    data = synthetic()
    labels = data.train.labels.clone()
    labels[0] = (labels[0] + 1) % 3
    other_ids = replace(data, train=replace(data.train, ids=[*data.train.ids[:-1], "new"]))
    prints = {
        fingerprint(data),
        fingerprint(data.with_given_labels(labels)),
        fingerprint(other_ids),
    }
    assert len(prints) == 3 and fingerprint(data) == fingerprint(synthetic())
