"""One writer at a time per folder, by a lock that ends with the process that holds it."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from oddly.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there
    fcntl = None  # type: ignore[assignment]

LOCK = ".oddly-lock"
"""Lies in the folder while somebody writes there, and holds the writer's process id."""
TRIES = 100  # at a file that another writer, just done, removes under our hands


class FolderBusy(InputError):
    """Somebody else writes there now."""


class _Held(threading.local):
    def __init__(self) -> None:
        self.folders: set[str] = set()


_held = _Held()
_descriptors: set[int] = set()


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Keep every other writer out; a folder made for the lock goes again if it stays empty.

    A thread may enter it again for the same folder. Where the system or the drive knows no flock,
    nothing is locked.
    """
    place = os.path.realpath(folder)
    if place in _held.folders or _is_file(place):
        yield  # a file is for the writer to complain of
        return
    made = list(takewhile(lambda each: not each.exists(), (folder, *folder.parents)))
    try:
        descriptor = _take(folder)
        _held.folders.add(place)
        try:
            yield
        finally:
            _held.folders.discard(place)
            _release(folder, descriptor)
    finally:
        with suppress(OSError):  # not empty: as it should be
            for each in made:
                each.rmdir()


def _is_file(place: str) -> bool:
    """Asked once: a folder that goes between two questions would seem to be a file."""
    try:
        return not stat.S_ISDIR(os.stat(place).st_mode)
    except OSError:
        return False


def _take(folder: Path) -> int | None:
    """The locked file's descriptor; None where locking is not possible."""
    for _ in range(TRIES if fcntl else 0):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, FileNotFoundError):  # it, or one above, came and went just now
            continue
        try:
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # the folder went just now
            continue
        except PermissionError:  # another user's lock, which may still be asked; or read only
            try:
                descriptor = os.open(folder / LOCK, os.O_RDONLY)
            except OSError:
                return None
        except OSError:  # a folder that may only be read
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(folder, descriptor) from None
        except OSError:  # a drive without locks: nobody needs the file
            os.close(descriptor)
            (folder / LOCK).unlink(missing_ok=True)
            return None
        if _is_there(folder, descriptor):
            _descriptors.add(descriptor)
            with suppress(OSError):  # a full disk: then nobody is told who it is
                os.truncate(descriptor, 0)
                os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            return descriptor
        os.close(descriptor)
    return None


def _busy(folder: Path, descriptor: int) -> FolderBusy:
    said = os.pread(descriptor, 20, 0).decode("ascii", "replace")
    os.close(descriptor)
    who = f" (pid {said})" if said.isdecimal() else ""
    return FolderBusy(
        f"another process{who} is writing to {folder}; wait for it or choose another --out"
    )


def _is_there(folder: Path, descriptor: int) -> bool:
    """Whether the file that was locked is still the one that others will open."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(folder / LOCK))
    except FileNotFoundError:
        return False


def _release(folder: Path, descriptor: int | None) -> None:
    """Remove the file while it is still locked, so that it is never another writer's."""
    if descriptor is not None and descriptor in _descriptors:  # not in a process forked meanwhile
        _descriptors.discard(descriptor)
        with suppress(OSError):
            (folder / LOCK).unlink()
        os.close(descriptor)


def _forget() -> None:
    """In a forked process, as a loader's worker is: the lock is its parent's alone.

    A copy of the descriptor would keep the folder locked after the parent was killed.
    """
    for descriptor in _descriptors:
        os.close(descriptor)
    _descriptors.clear()
    _held.folders.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
