"""How fast the review page is for a run of a million examples, measured over HTTP.

Paper: nothing; the page is ours.
Command: oddly benchmark review
Cost: about half a minute on two CPU cores. It makes a run folder with a million verdicts and real
PNG files for the worst suspects, starts `oddly review` as a process of its own, and requests what
the page would request.
Numbers to match, ours, on two cores: first_page_milliseconds ≤ 300 (page, stylesheet, script, first
suspect and its picture, over new connections) and next_suspect_milliseconds ≤ 50 (decision on disk,
next suspect, its picture). Both are 95th percentiles; median and slowest are printed too. What was
measured: docs/review.md#speed.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from PIL import Image

from oddly.errors import InputError
from oddly.records import RunWriter, VerdictTable, environment
from oddly.review.server import STATIC

CLASSES, REMOVED = 1000, 0.2
SIDE = 224
FIRST_PAGES, TABS = 20, 8
PARTS = tuple(f"/static/{name}" for name in STATIC)  # of the page, which a browser fetches first


class Client:
    """What a tab asks, over one connection that stays open."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        assert parts.port is not None
        self.link = f"/?{parts.query}"
        self.connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=60)
        self.headers = {
            "Cookie": f"oddly_review_{parts.port}={parse_qs(parts.query)['token'][0]}",
            "Origin": f"http://127.0.0.1:{parts.port}",
            "Content-Type": "application/json",
        }

    def ask(self, path: str, body: object = None) -> bytes:
        sent = None if body is None else json.dumps(body)
        self.connection.request("GET" if body is None else "POST", path, sent, self.headers)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise InputError(f"the server returned {answer.status} for {path}: {content[:200]!r}")
        return content

    def decide(self, rank: int) -> dict[str, Any]:
        asked = {"rank": rank, "action": "remove", "revision": 0}
        return dict(json.loads(self.ask("/api/decide", asked)))


def measure(
    examples: int = 1_000_000, decisions: int = 200, folder: Path | None = None
) -> dict[str, Any]:
    """All figures; `folder` is where the run is made (default: a temporary one)."""
    with TemporaryDirectory(dir=folder) as made:
        run = make_run(Path(made), examples, decisions + 1)
        with serving(run) as (link, start_seconds):
            figures = {
                "examples": examples,
                "suspects": int(examples * REMOVED),
                "start_seconds": start_seconds,
                **time_first_page(link),
                **time_next_suspect(link, decisions),
                **count_writes(link, decisions),
            }
    return {**figures, **environment()}


def make_run(folder: Path, examples: int, pictures: int) -> Path:
    """A finished run of random verdicts; the worst suspects have pictures."""
    generator = np.random.default_rng(0)
    given = generator.integers(CLASSES, size=examples)
    scores = np.linspace(3, -3, examples)  # the worst stand first, where the pictures are
    table = VerdictTable(
        ids=[f"class {k:04d}/picture {i:07d}.png" for i, k in enumerate(given)],
        given_labels=given,
        losses=scores,
        scores=scores,
        counterfactual_percentiles=np.linspace(99, 0, examples),
        threshold=float(scores[int(examples * REMOVED)]),
        keep=np.arange(examples) >= int(examples * REMOVED),
        suggested_labels=(given + 1) % CLASSES,
        suggested_confidences=generator.random(examples),
        class_names=[f"class {k:04d}" for k in range(CLASSES)],
    )
    for id in table.ids[:pictures]:
        path = folder / "data" / id
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = generator.integers(256, size=(SIDE, SIDE, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path, compress_level=1)
    config = {"data": str(folder / "data"), "method": "odd"}
    writer = RunWriter.create(folder / "run", config, {})
    writer.write_verdicts(table)
    writer.finish({})
    return writer.path


@contextmanager
def serving(run: Path) -> Iterator[tuple[str, float]]:
    """`oddly review` in a process of its own: its link, and the seconds until it was there."""
    command = [sys.executable, "-m", "oddly", "review", str(run), "--port", "0"]
    begun = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        try:
            if not words:
                raise InputError("oddly review did not start")
            client = Client(words[-1])
            client.ask("/api/start")
            client.connection.close()
            yield words[-1], time.perf_counter() - begun
        finally:
            process.terminate()


def time_first_page(link: str) -> dict[str, float]:
    """Everything a browser fetches before the first suspect stands there, without a cache."""
    seconds = []
    for _ in range(FIRST_PAGES):
        begun = time.perf_counter()
        client = Client(link)
        client.ask(client.link)
        for path in PARTS:
            client.ask(path)
        client.ask(json.loads(client.ask("/api/start"))["card"]["image"])
        seconds.append(time.perf_counter() - begun)
        client.connection.close()
    return describe("first_page", seconds)


def time_next_suspect(link: str, decisions: int) -> dict[str, float]:
    """From the key to the next picture, though the page has fetched that one before."""
    client = Client(link)
    card = json.loads(client.ask("/api/start"))["card"]
    seconds = []
    for _ in range(decisions):
        begun = time.perf_counter()
        card = client.decide(card["rank"])["card"]
        client.ask(card["image"])
        seconds.append(time.perf_counter() - begun)
    client.connection.close()
    return describe("next_suspect", seconds)


def describe(name: str, seconds: list[float]) -> dict[str, float]:
    """The 95th percentile, the median, the slowest, and of how many."""
    milliseconds = 1e3 * np.array(seconds)
    return {
        f"{name}_milliseconds": float(np.percentile(milliseconds, 95)),
        f"{name}_median_milliseconds": float(np.median(milliseconds)),
        f"{name}_slowest_milliseconds": float(milliseconds.max()),
        f"{name}_repeats": len(seconds),
    }


def count_writes(link: str, decisions: int) -> dict[str, float]:
    """Decisions on disk per second: one tab alone, then several at once."""

    def write(first: int) -> None:
        client = Client(link)
        for rank in range(first, first + decisions):
            client.decide(rank)
        client.connection.close()

    begun = time.perf_counter()
    write(decisions)
    alone = time.perf_counter() - begun
    begun = time.perf_counter()
    with ThreadPoolExecutor(TABS) as tabs:
        list(tabs.map(write, range(2 * decisions, (2 + TABS) * decisions, decisions)))
    together = time.perf_counter() - begun
    return {
        "writes_per_second": decisions / alone,
        "writes_per_second_of_8_tabs": TABS * decisions / together,
        "writes": (1 + TABS) * decisions,
    }
