from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oddly.errors import InputError
from oddly.review import decisions
from oddly.review.decisions import Decision, Decisions, Stale


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "decisions.sqlite"


def test_what_was_decided_stands_and_is_found_again(path: Path) -> None:
    store = Decisions(path)
    assert store.current("a") is None and store.revision("a") == 0
    assert store.decide("a", "keep", "cat", 0) == Decision(1, "a", "keep", "cat")
    assert store.decide("b", "remove", None, 0) == Decision(2, "b", "remove", None)
    assert store.decide("a", "relabel", "dog", 1) == Decision(3, "a", "relabel", "dog")
    store.close()
    again = Decisions(path)
    assert again.standing() == [
        Decision(3, "a", "relabel", "dog"),
        Decision(2, "b", "remove", None),
    ]
    again.close()


def test_every_commit_is_flushed(path: Path) -> None:
    store = Decisions(path)
    (mode,) = store._database.execute("PRAGMA journal_mode").fetchone()
    (flush,) = store._database.execute("PRAGMA synchronous").fetchone()
    assert (mode, flush) == ("wal", 2)  # 2 = FULL
    store.close()


def test_undo_brings_the_one_before_back(path: Path) -> None:
    store = Decisions(path)
    first = store.decide("a", "keep", "cat", 0)
    second = store.decide("a", "remove", None, first.revision)
    assert store.last({"a"}) == second
    assert store.undo(second.revision) == "a"
    assert store.current("a") == first and store.last({"a"}) == first
    with pytest.raises(Stale):  # not twice
        store.undo(second.revision)
    store.undo(first.revision)
    assert store.current("a") is None and store.standing() == [] and store.last({"a"}) is None
    # The example has a past: a page from before it is stale, one that knows the undo is not.
    with pytest.raises(Stale):
        store.decide("a", "keep", "cat", 0)
    assert store.decide("a", "skip", None, store.revision("a")).revision == 5
    store.close()


def test_only_the_decision_on_top_can_be_undone(path: Path) -> None:
    store = Decisions(path)
    first = store.decide("a", "keep", "cat", 0)
    store.decide("a", "remove", None, first.revision)
    with pytest.raises(Stale):
        store.undo(first.revision)
    with pytest.raises(Stale):
        store.undo(99)
    store.close()


def test_last_looks_only_among_the_examples_asked_about(path: Path) -> None:
    store = Decisions(path)
    store.decide("a", "keep", "cat", 0)
    store.decide("b", "keep", "cat", 0)
    found = store.last({"a"})
    assert found is not None and found.id == "a"
    store.close()


def test_two_processes_do_not_overwrite_each_other(path: Path) -> None:
    seen: list[tuple[str, Decision | None]] = []
    mine, theirs = Decisions(path, lambda id, now: seen.append((id, now))), Decisions(path)
    made = theirs.decide("a", "keep", "cat", 0)
    with pytest.raises(Stale):  # mine has not heard of it until it writes
        mine.decide("a", "remove", None, 0)
    assert mine.current("a") == made and seen == [("a", made)]
    mine.decide("b", "remove", None, 0)
    theirs.refresh()
    assert [d.id for d in theirs.standing()] == ["a", "b"]
    mine.close()
    theirs.close()


def test_the_same_decision_sent_again_is_no_conflict_and_no_second_row(path: Path) -> None:
    store = Decisions(path)
    first = store.decide("a", "remove", None, 0)
    assert store.decide("a", "remove", None, 0) == replace(first, again=True)
    (rows,) = store._database.execute("SELECT count(*) FROM log").fetchone()
    assert rows == 1
    store.close()


def test_of_many_threads_on_one_example_exactly_one_wins(path: Path) -> None:
    stores = [Decisions(path), Decisions(path)]
    won: list[str] = []

    def try_it(number: int) -> None:
        with suppress(Stale):
            won.append(stores[number % 2].decide("a", "relabel", f"class {number}", 0).label or "")

    threads = [threading.Thread(target=try_it, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    stores[0].refresh()
    current = stores[0].current("a")
    assert current is not None and current.label == won[0]
    for store in stores:
        store.close()


@pytest.mark.parametrize(
    ("action", "label"), [("keep", None), ("remove", "cat"), ("undo", None), ("eat", "cat")]
)
def test_decisions_that_make_no_sense(path: Path, action: str, label: str | None) -> None:
    store = Decisions(path)
    with pytest.raises(ValueError, match="no such decision"):
        store.decide("a", action, label, 0)
    store.close()


def test_a_failed_write_leaves_nothing_in_memory(path: Path) -> None:
    store = Decisions(path)
    store._database.execute("PRAGMA query_only = ON")
    with pytest.raises(sqlite3.OperationalError):
        store.decide("a", "remove", None, 0)
    assert store.current("a") is None and store.revision("a") == 0
    store._database.execute("PRAGMA query_only = OFF")
    assert store.decide("a", "remove", None, 0).revision == 1
    store.close()


def test_not_a_database(path: Path) -> None:
    path.write_bytes(b"decisions? " * 500)
    with pytest.raises(InputError, match=r"is damaged .*move it away"):
        Decisions(path)


def test_torn_pages(path: Path) -> None:
    store = Decisions(path)
    for i in range(300):
        store.decide(f"example {i}", "remove", None, 0)
    store.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * 8192 + whole[12288:])
    with pytest.raises(InputError, match="is damaged"):
        Decisions(path)


def test_somebody_elses_database_and_a_later_format(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE x (y)")
    other.close()
    with pytest.raises(InputError, match="of another program"):
        Decisions(path)
    path.unlink()
    store = Decisions(path)
    store._database.execute("PRAGMA user_version = 9")
    store.close()
    with pytest.raises(InputError, match="format 9, but this version of oddly reads 1"):
        Decisions(path)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "nowhere" / "d.sqlite"):
        with pytest.raises(InputError, match=r"unable to open .*--decisions FILE"):
            Decisions(path)


def test_a_file_that_cannot_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a folder of somebody else's: a new file would hold none of what is in this one."""
    Decisions(path).close()

    def refuse(path: Path) -> sqlite3.Connection:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr(decisions, "_open", refuse)
    with pytest.raises(
        InputError, match="readonly database; copy it to a writable path .*--decisions"
    ):
        Decisions(path)


def take_away(path: Path) -> None:
    path.unlink()


def put_another_there(path: Path) -> None:
    other = path.with_name("other.sqlite")
    Decisions(other).close()
    other.replace(path)


@pytest.mark.parametrize("lose", [take_away, put_another_there])
def test_nothing_is_taken_for_saved_once_the_file_is_gone(
    path: Path, lose: Callable[[Path], None]
) -> None:
    """SQLite itself would go on writing into a file without a name."""
    store = Decisions(path)
    made = store.decide("a", "keep", "cat", 0)
    lose(path)
    for attempt in (
        lambda: store.decide("b", "remove", None, 0),
        lambda: store.undo(made.revision),
        store.refresh,
    ):
        with pytest.raises(sqlite3.OperationalError, match="is missing or was replaced"):
            attempt()
    assert store.current("a") == made and store.current("b") is None
    store.close()


def test_a_file_that_goes_while_it_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Decisions(path)
    append = store._append

    def append_and_lose(*values: Any) -> int:
        revision = append(*values)
        path.unlink()
        return revision

    monkeypatch.setattr(store, "_append", append_and_lose)
    with pytest.raises(sqlite3.OperationalError, match="is missing or was replaced"):
        store.decide("a", "remove", None, 0)
    assert store.current("a") is None
    store.close()
