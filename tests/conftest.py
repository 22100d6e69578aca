"""Fixtures that several rooms' tests share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_configure(config: pytest.Config) -> None:
    # One thread per worker: two workers with two threads each crawl.
    if "PYTEST_XDIST_WORKER" in os.environ:
        torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        skip = pytest.mark.skip(reason="needs a CUDA GPU")
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def cifar_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the official CIFAR-10 and CIFAR-100, made once for all workers."""
    if given := os.environ.get("ODDLY_CIFAR"):
        return Path(given)
    maker = SHARED / "cifar"
    if not maker.exists():
        pytest.skip("needs the official CIFAR folders: set ODDLY_CIFAR to where they lie")
    # xdist workers have folders of their own below a common one: share it, one of them makes it.
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    root = common / "cifar"
    with _only_one(common / "cifar.lock"):
        subprocess.run([sys.executable, str(maker), "unpack", str(root)], check=True)
    return root


@pytest.fixture(scope="session")
def human_labels() -> Path:
    """CIFAR-10N's aggregate and random1 labels."""
    path = SHARED / "cifar10n_aggregate_random1.npz"
    if not path.exists():
        pytest.skip("needs the CIFAR-10N label file")
    return path


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A real browser; installed from Debian where it is missing and may be."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if not shutil.which("chromium") and shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "install", "-qqy", "chromium"], check=False, timeout=600)
    if not (path := shutil.which("chromium")):
        pytest.skip("needs chromium (apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class _only_one:
    """A lock between processes; the kernel lets go of it when a holder dies."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        import fcntl

        self.file = open(self.path, "w")  # noqa: SIM115
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self.file.close()


@pytest.fixture
def lost_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders with "lost" in their path cannot be listed."""
    scandir = os.scandir  # root may read everything, so that a mode would refuse nobody

    def refuse(path: str | Path) -> Iterator[os.DirEntry[str]]:
        if "lost" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr("oddly.data.image_folder.os.scandir", refuse)
