"""A small finished run over real picture files, and a server over it that really listens."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest
from PIL import Image

from oddly.records import Run, RunWriter, VerdictTable
from oddly.review.server import create_app, listen
from oddly.review.session import Session

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CLASSES = ("cat", "dog", "emu")
TOKEN = "a-token-of-the-tests"


def write_run(
    folder: Path,
    ids: Sequence[str],
    data: Path | str,
    *,
    keep: Sequence[bool] | None = None,
    class_names: Sequence[str] = CLASSES,
    confidence: float = 0.9,
    predicted: bool = True,
    doubt: str | None = None,
    **config: Any,
) -> Run:
    """A finished run; the first example is the most suspicious, given labels go round."""
    n, k = len(ids), len(class_names)
    given = np.arange(n) % k
    table = VerdictTable(
        ids=ids,
        given_labels=given,
        losses=np.linspace(4, 1, n),
        scores=np.linspace(4, 1, n),
        counterfactual_percentiles=np.linspace(95, 5, n),
        threshold=0.5,
        keep=np.zeros(n, bool) if keep is None else np.asarray(keep),
        suggested_labels=(given + 1) % k if predicted else np.full(n, -1),
        suggested_confidences=np.full(n, confidence),
        class_names=class_names,
    )
    writer = RunWriter.create(folder, {"data": str(data), "method": "odd", **config}, {})
    writer.write_verdicts(table)
    writer.finish({"doubt": doubt} if doubt else {})
    return Run(folder)


def paint(path: Path, colour: str = "red", size: tuple[int, int] = (8, 6)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Nine pictures, three of each class."""
    root = tmp_path / "photos"
    for i in range(9):
        paint(root / CLASSES[i % 3] / f"{i}.png")
    return root


@pytest.fixture
def run(tmp_path: Path, photos: Path) -> Run:
    """Six suspects and three that were kept."""
    ids = [f"{CLASSES[i % 3]}/{i}.png" for i in range(9)]
    return write_run(tmp_path / "run", ids, photos, keep=[False] * 6 + [True] * 3)


@dataclass
class Site:
    """A server that listens, and a browser that holds its cookie."""

    url: str
    port: int
    client: httpx.Client

    def decide(self, rank: int, action: str, revision: int = 0, label: str | None = None) -> Any:
        asked = {"rank": rank, "action": action, "label": label, "revision": revision}
        return self.client.post("/api/decide", json=asked)


Serve = Callable[[Session], Site]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers in threads of this process, with real sockets, and stops them."""
    import uvicorn

    running: list[tuple[uvicorn.Server, threading.Thread, httpx.Client, socket.socket]] = []

    def start(session: Session) -> Site:
        sock = listen(0)
        port = sock.getsockname()[1]
        app = create_app(session, TOKEN, port)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        url = f"http://127.0.0.1:{port}"
        client = httpx.Client(base_url=url, headers={"Origin": url}, timeout=10)
        client.get("/", params={"token": TOKEN}).raise_for_status()
        running.append((server, thread, client, sock))
        return Site(url, port, client)

    yield start
    for server, thread, client, sock in running:
        client.close()
        server.should_exit = True
        thread.join()
        sock.close()


@pytest.fixture
def site(run: Run, serve: Serve) -> Iterator[Site]:
    session = Session(run)
    yield serve(session)
    session.decisions.close()


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture
def page(chromium: Browser, complaints: list[str]) -> Iterator[Page]:
    """A tab that writes down whatever the console or the policy has to complain about."""
    context = chromium.new_context(viewport={"width": 1200, "height": 800})
    page = context.new_page()
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    yield page
    context.close()
