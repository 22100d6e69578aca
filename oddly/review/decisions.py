"""The decisions about examples: an append-only log in SQLite.

A decision is on disk before `decide` returns (WAL, synchronous=FULL). Rows are never changed; an
undo is one more row. The resulting state is kept in memory. Before a new decision is made, it is
brought up to date with rows that other processes have written.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from oddly.errors import InputError

FILE_NAME = "decisions.sqlite"
ACTIONS = ("keep", "suggestion", "relabel", "remove", "skip")
UNDO = "undo"
_APPLICATION, _FORMAT = 0x0DD1, 1
_BUSY_SECONDS = 10.0
_SCHEMA = """
CREATE TABLE log (
  revision INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  action TEXT NOT NULL,
  label TEXT,
  undoes INTEGER,
  made_at TEXT NOT NULL
)
"""


@dataclass(frozen=True)
class Decision:
    """A decision that has not been undone."""

    revision: int
    id: str
    action: str
    label: str | None
    """The label to give to the example; None for `remove` and `skip`."""
    again: bool = False
    """Whether it existed already: the response was lost, or another tab was first."""


Changed = Callable[[str, Decision | None], None]
"""Called with each example that was decided on, in any process, and its current decision."""


class Stale(Exception):
    """The example was decided on in the meantime, so the page showed an old state."""


class Decisions:
    """The decisions of one run, shared between threads, tabs and processes."""

    def __init__(self, path: Path, changed: Changed | None = None) -> None:
        self.path = path
        self._changed = changed
        self._lock = threading.Lock()
        self._seen = 0  # the last row of the log that was read
        self._standing: dict[str, list[Decision]] = {}  # per example; the last one counts
        self._touched: dict[str, int] = {}  # per example, the last row about it, undos included
        self._history: dict[int, Decision] = {}  # decisions not undone, in order, by revision
        with _told_plainly(path):
            self._database = _open(path)
            self._file = _identity(path)  # to notice if the file is deleted while it is open
            self._catch_up()

    def current(self, id: str) -> Decision | None:
        """The current decision about an example."""
        top = self._standing.get(id, [])[-1:]  # in one step, as another thread may undo it
        return top[0] if top else None

    def revision(self, id: str) -> int:
        """The last row about an example (0 if none); a new decision must give this number."""
        return self._touched.get(id, 0)

    def standing(self) -> list[Decision]:
        """The current decision about each decided example, in no particular order."""
        with self._lock:
            return [stack[-1] for stack in self._standing.values() if stack]

    def last(self, among: Container[str]) -> Decision | None:
        """The newest decision about one of these examples, which an undo would revert."""
        with self._lock:
            newest_first = reversed(self._history.values())
            return next((decision for decision in newest_first if decision.id in among), None)

    def refresh(self) -> None:
        """Read the decisions of other processes."""
        with self._lock:
            self._check_file()
            self._catch_up()

    def decide(self, id: str, action: str, label: str | None, seen: int) -> Decision:
        """Write a decision made when the example's revision was `seen`; it is on disk on return.

        Sending the same decision again (because the response was lost) is not a conflict.
        """
        if action not in ACTIONS or (label is None) != (action in ("remove", "skip")):
            raise ValueError(f"no such decision: {action} {label}")
        with self._writing():
            now = self.current(id)
            if now and (now.action, now.label) == (action, label):
                return replace(now, again=True)
            if self.revision(id) != seen:
                raise Stale
            revision = self._append(id, action, label, None)
        return Decision(revision, id, action, label)

    def undo(self, revision: int) -> str:
        """Undo a decision if it is still the current one; returns its example's id."""
        with self._writing():
            decision = self._history.get(revision)
            if decision is None or self.current(decision.id) is not decision:
                raise Stale
            self._append(decision.id, UNDO, None, revision)
        return decision.id

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction on the up-to-date log; committed, and read into memory, at the end."""
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._check_file()
                self._catch_up()
                yield
                self._database.execute("COMMIT")
                self._check_file()
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
            self._catch_up()

    def _check_file(self) -> None:
        """Raise if the open file is no longer the one at `path`."""
        if _identity(self.path) != self._file:
            raise sqlite3.OperationalError(
                "the file of decisions is missing or was replaced; start oddly review again"
            )

    def _append(self, id: str, action: str, label: str | None, undoes: int | None) -> int:
        made_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        cursor = self._database.execute(
            "INSERT INTO log (id, action, label, undoes, made_at) VALUES (?, ?, ?, ?, ?)",
            (id, action, label, undoes, made_at),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _catch_up(self) -> None:
        rows = self._database.execute(
            "SELECT revision, id, action, label, undoes FROM log WHERE revision > ?"
            " ORDER BY revision",
            (self._seen,),
        ).fetchall()
        for revision, id, action, label, undoes in rows:
            stack = self._standing.setdefault(id, [])
            if action == UNDO:
                if stack and stack[-1].revision == undoes:
                    del self._history[stack.pop().revision]
            else:
                stack.append(Decision(revision, id, action, label))
                self._history[revision] = stack[-1]
            self._touched[id] = self._seen = revision
            if self._changed:
                self._changed(id, stack[-1] if stack else None)


def _open(path: Path) -> sqlite3.Connection:
    """Open or create the database; every commit is flushed to the disk."""
    database = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA fullfsync = ON")  # macOS: also flush the disk's own cache
        _prepare(database, path)
        (sound,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if sound != "ok":
            raise sqlite3.DatabaseError(sound.splitlines()[0])
    except BaseException:
        database.close()
        raise
    return database


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    """Lay out a new file; refuse one that is not ours."""
    database.execute("BEGIN IMMEDIATE")
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not application:
        database.execute(_SCHEMA)
        database.execute(f"PRAGMA application_id = {_APPLICATION}")
        database.execute(f"PRAGMA user_version = {_FORMAT}")
    elif application != _APPLICATION:
        raise InputError(f"{path} is a database of another program; move it away")
    elif version != _FORMAT:
        reason = f"has format {version}, but this version of oddly reads {_FORMAT}"
        raise InputError(f"{path} {reason}; use the version that wrote it")
    database.execute("COMMIT")


@contextmanager
def _told_plainly(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        reason = str(error)
        if "locked" in reason:
            raise InputError(f"{path} is locked by another program; close that program") from None
        hint = "use --decisions FILE with a writable path"
        if path.is_file():  # a new file would lose these decisions
            hint = "copy it to a writable path and use --decisions with the copy"
        raise InputError(f"{path}: {reason}; {hint}") from None
    except sqlite3.DatabaseError as error:
        hint = f"move it away to start over, or recover it with: sqlite3 '{path}' .recover"
        raise InputError(f"{path} is damaged ({error}); {hint}") from None
