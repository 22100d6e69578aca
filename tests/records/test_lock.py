from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from oddly.errors import InputError
from oddly.records import FolderBusy, Run, RunWriter, lock, writing
from oddly.records.lock import LOCK
from tests.writers import another_writer

COUNT = """
import sys, time
from pathlib import Path
from oddly.records import FolderBusy, writing
folder, done = Path(sys.argv[1]), 0
while done < 40:
    try:
        with writing(folder / "run"):
            count = int((folder / "count").read_text())
            time.sleep(0.001)
            (folder / "count").write_text(str(count + 1))
            done += 1
    except FolderBusy:
        pass
"""


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    RunWriter.create(folder, {"method": "odd"}, {})
    with another_writer(folder) as (process, _):
        with pytest.raises(FolderBusy) as caught, writing(folder):
            pass
        assert isinstance(caught.value, InputError) and str(caught.value) == (
            f"another process (pid {process.pid}) is writing to {folder};"
            " wait for it or choose another --out"
        )
        assert Run(folder).config["method"] == "odd"  # whoever only reads is not kept out


def test_a_killed_writer_holds_nothing(tmp_path: Path) -> None:
    with another_writer(tmp_path) as (process, _):
        process.kill()
        process.wait()
        assert (tmp_path / LOCK).read_text() == str(process.pid)
        RunWriter.create(tmp_path, {}, {})  # what it left is no file of somebody's
        with writing(tmp_path):
            assert (tmp_path / LOCK).read_text() == str(os.getpid())
    assert not (tmp_path / LOCK).exists()


def test_workers_that_outlive_their_killed_parent_hold_nothing(tmp_path: Path) -> None:
    with another_writer(tmp_path, "outlive") as (process, worker):
        process.kill()
        process.wait()
        try:
            os.kill(worker, 0)  # it lives
            with writing(tmp_path):
                pass
        finally:
            os.kill(worker, 9)


def test_a_forked_process_that_leaves_the_block_does_not_end_the_lock(tmp_path: Path) -> None:
    with another_writer(tmp_path, "leave"):
        assert (tmp_path / LOCK).exists()
        with pytest.raises(FolderBusy), writing(tmp_path):
            pass


def test_a_writer_may_enter_again_and_another_thread_may_not(tmp_path: Path) -> None:
    found: list[Exception] = []

    def intrude() -> None:
        try:
            with writing(tmp_path):
                pass
        except FolderBusy as error:
            found.append(error)

    with writing(tmp_path):
        with writing(tmp_path / "." / ".." / tmp_path.name):
            pass
        assert (tmp_path / LOCK).exists()
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
    assert len(found) == 1 and not list(tmp_path.iterdir())


def test_a_folder_made_for_the_lock_goes_unless_it_is_used(tmp_path: Path) -> None:
    with pytest.raises(KeyError), writing(tmp_path / "a" / "b"):
        raise KeyError
    assert not list(tmp_path.iterdir())
    with writing(tmp_path / "a" / "b"):
        RunWriter.create(tmp_path / "a" / "b", {}, {})
    assert sorted(os.listdir(tmp_path / "a" / "b")) == ["config.json", "environment.json"]
    (tmp_path / "mine").mkdir()
    with writing(tmp_path / "mine"):
        pass
    assert (tmp_path / "mine").exists()  # it was there before


def test_a_file_is_for_the_writer_to_complain_of(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with writing(tmp_path / "file"), pytest.raises(InputError, match="is a file"):
        RunWriter.create(tmp_path / "file", {}, {})


def test_where_there_are_no_locks_nothing_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock.fcntl, "flock", refuse)  # as some network drives do
    with writing(tmp_path):
        assert not list(tmp_path.iterdir())
    monkeypatch.setattr(lock, "fcntl", None)  # as on Windows
    with writing(tmp_path / "new"):
        RunWriter.create(tmp_path / "new", {}, {})


def test_never_two_at_once_while_files_and_folders_come_and_go(tmp_path: Path) -> None:
    """Read, wait, write: two at once would lose counts."""
    (tmp_path / "count").write_text("0")
    command = [sys.executable, "-c", COUNT, str(tmp_path)]
    for each in [subprocess.Popen(command) for _ in range(3)]:
        assert each.wait(60) == 0
    assert (tmp_path / "count").read_text() == "120"
