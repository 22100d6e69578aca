"""What may go wrong around a training: others at work, nothing to store in, useless files."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from oddly.engine.checkpoint import milestone_path
from oddly.errors import InputError
from oddly.experiments.base import Job
from oddly.experiments.runner import Runner
from oddly.records import writing
from tests.experiments.conftest import NOISE, TINY


def test_two_at_once_leave_each_other_alone(runner: Runner) -> None:
    """What another process trains is passed over, and so is what it has stored meanwhile."""
    trunk, other = TINY.trunk("synthetic", 0, **NOISE), TINY.trunk("synthetic", 1, **NOISE)
    third = Job(TINY.trunk("synthetic", 2, **NOISE), until=1, snapshots=(1,))
    jobs = [Job(trunk), Job(TINY.paper("synthetic", 0, **NOISE), trunk), Job(other), third]
    told: list[str] = []
    runner.tell = told.append
    Runner(runner.store, TINY, runner.runs, tell=lambda text: None).train(third)
    with ThreadPoolExecutor(1) as another, writing_in(another, runner.folder(trunk)):
        assert runner.run(jobs) == [Job(other)]
    assert sum("another process is training this" in line for line in told) == 2
    assert runner.run(jobs[:2]) == jobs[:2]


@contextmanager
def writing_in(thread: ThreadPoolExecutor, folder: Path) -> Iterator[None]:
    """Another thread holds the folder's lock."""
    lock = writing(folder)
    thread.submit(lock.__enter__).result()
    yield
    thread.submit(lock.__exit__, None, None, None).result()


def test_what_cannot_be_stored_is_not_trained(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "results").touch()
    with pytest.raises(FileExistsError):
        runner.run([Job(TINY.trunk("synthetic", 0, **NOISE))])
    assert not runner.runs.exists()


@pytest.mark.parametrize(
    ("dataset", "told"), [("imagenet", "val is missing"), ("places", "unknown extra test set")]
)
def test_a_further_test_set_is_looked_for_before_the_training(
    runner: Runner, tmp_path: Path, dataset: str, told: str
) -> None:
    runner.where = {"data_dir": str(tmp_path)}
    job = Job(TINY.trunk("synthetic", 0), also_test=dataset)
    with pytest.raises(InputError, match=told):
        runner.run([job])
    assert not runner.runs.exists()


@pytest.mark.parametrize("content", [b"junk", {"finished": 2}])
def test_a_useless_checkpoint_is_told_with_the_folder_to_remove(
    runner: Runner, content: bytes | dict[str, int]
) -> None:
    """Also where it is the trunk's: the fork's own folder is not to blame."""
    trunk = TINY.trunk("synthetic", 0, **NOISE)
    job = Job(TINY.paper("synthetic", 0, **NOISE), trunk)
    runner.grow_trunk(trunk, 2, {2})
    path = milestone_path(runner.folder(trunk), 2)
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    with pytest.raises(InputError, match=f"; remove {runner.folder(trunk)} and run again$"):
        runner.run([job])
