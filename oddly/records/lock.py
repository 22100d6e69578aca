"""Allow one writer at a time per folder, with a lock that ends with the process that holds it."""

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
"""Exists in a folder while a process writes there; contains the id of that process."""
TRIES = 100  # the file may be removed by another writer that has just finished


class FolderBusy(InputError):
    """Another process is writing to the folder."""


class _Held(threading.local):
    def __init__(self) -> None:
        self.folders: set[str] = set()


_held = _Held()
_descriptors: set[int] = set()


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Keep all other writers out. A folder created for the lock is removed if it stays empty.

    The same thread may enter again for the same folder. If the system or the drive does not support
    flock, nothing is locked.
    """
    place = os.path.realpath(folder)
    if place in _held.folders or _is_file(place):
        yield  # if it is a file, the writer will raise a clear error
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
        with suppress(OSError):  # not empty, as expected
            for each in made:
                each.rmdir()


def _is_file(place: str) -> bool:
    """Whether it is a file; one call of stat, as the folder may disappear between two."""
    try:
        return not stat.S_ISDIR(os.stat(place).st_mode)
    except OSError:
        return False


def _take(folder: Path) -> int | None:
    """The descriptor of the locked file; None if locking is not possible."""
    for _ in range(TRIES if fcntl else 0):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, FileNotFoundError):  # created or removed by another process
            continue
        try:
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # the folder was just removed
            continue
        except PermissionError:  # another user's lock, which may be readable; or a read-only folder
            try:
                descriptor = os.open(folder / LOCK, os.O_RDONLY)
            except OSError:
                return None
        except OSError:  # a read-only file system
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(folder, descriptor) from None
        except OSError:  # the drive does not support locks: remove the file
            os.close(descriptor)
            (folder / LOCK).unlink(missing_ok=True)
            return None
        if _is_there(folder, descriptor):
            _descriptors.add(descriptor)
            with suppress(OSError):  # a full disk: then the id is missing in error messages
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
    """Whether the locked file is still the one at this path, which others will open."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(folder / LOCK))
    except FileNotFoundError:
        return False


def _release(folder: Path, descriptor: int | None) -> None:
    """Remove the file while it is still locked, so that it cannot be another writer's."""
    if descriptor is not None and descriptor in _descriptors:  # False in a forked process
        _descriptors.discard(descriptor)
        with suppress(OSError):
            (folder / LOCK).unlink()
        os.close(descriptor)


def _forget() -> None:
    """Give up the lock in a forked process, such as a loader's worker; only the parent holds it.

    A copy of the descriptor would keep the folder locked after the parent was killed.
    """
    for descriptor in _descriptors:
        os.close(descriptor)
    _descriptors.clear()
    _held.folders.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
