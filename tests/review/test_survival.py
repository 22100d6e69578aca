"""kill -9 at any moment loses nothing that was acknowledged."""

from __future__ import annotations

import http.client
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from oddly.records import Run
from oddly.review.decisions import Decisions
from tests.review.conftest import write_run
from tests.review.process import Server

ROUNDS = 20
SUSPECTS = 20_000


@pytest.fixture
def large_run(tmp_path: Path, photos: Path) -> Run:
    return write_run(tmp_path / "large", [f"{i}.png" for i in range(SUSPECTS)], photos)


def decide_until_killed(
    server: Server, ranks: range, acknowledged: dict[int, str], sent: dict[int, str]
) -> None:
    """Decisions one after another, noted before they are sent and when they are answered."""
    for rank in ranks:
        action = ("keep", "suggestion", "remove")[rank % 3]
        sent[rank] = action
        try:
            status, answer = server.ask(
                "/api/decide", {"rank": rank, "action": action, "revision": 0}
            )
        except (OSError, http.client.HTTPException, ValueError):
            return
        assert status == 200 and answer["saved"]["action"] == action
        acknowledged[rank] = action


@pytest.mark.slow
def test_kill_9_at_random_moments_loses_nothing_acknowledged(large_run: Run) -> None:
    chance = random.Random(7)
    acknowledged: dict[int, str] = {}
    sent: dict[int, str] = {}
    share = SUSPECTS // ROUNDS // 2
    for number in range(ROUNDS):
        with Server(large_run.path) as server:
            # What the rounds before had acknowledged is what this server starts from.
            begun = server.ask("/api/start")[1]["progress"]["decided"]
            assert begun >= len(acknowledged)
            first = 2 * number * share
            tabs = [range(first, first + share), range(first + share, first + 2 * share)]
            threads = [
                threading.Thread(target=decide_until_killed, args=(server, tab, acknowledged, sent))
                for tab in tabs
            ]
            for thread in threads:
                thread.start()
            wanted = len(acknowledged) + chance.randrange(1, 30)
            while len(acknowledged) < wanted and any(thread.is_alive() for thread in threads):
                time.sleep(0.001)
            time.sleep(chance.uniform(0.0, 0.01))  # in the middle of the next one
            server.kill()
            for thread in threads:
                thread.join()
    store = Decisions(large_run.path / "decisions.sqlite")
    standing = {int(each.id.removesuffix(".png")): each.action for each in store.standing()}
    store.close()
    assert len(acknowledged) > 100  # else the test shows nothing
    assert {rank: standing.get(rank) for rank in acknowledged} == acknowledged
    # Beyond that only what was sent and on its way when the kill came: at most one per tab.
    assert all(sent[rank] == action for rank, action in standing.items())
    assert len(standing) - len(acknowledged) <= 2 * ROUNDS


def test_ctrl_c_says_where_the_decisions_are(run: Run) -> None:
    with Server(run.path) as server:
        assert server.ask("/api/decide", {"rank": 0, "action": "remove", "revision": 0})[0] == 200
        server.process.send_signal(signal.SIGINT)
        _, told = server.process.communicate(timeout=20)
        assert server.process.returncode == 0
    assert told.splitlines() == [
        "6 to review, 6 still open. Press Ctrl-C to stop; decisions are saved.",
        f"decisions saved in {run.path}/decisions.sqlite",
    ]
    assert not (run.path / "decisions.sqlite-wal").exists()


def test_a_second_server_takes_the_next_port(run: Run) -> None:
    with Server(run.path) as first, Server(run.path, "--port", first.port) as second:
        assert second.port > first.port
        second.ask("/api/decide", {"rank": 0, "action": "remove", "revision": 0})
        status, answer = first.ask("/api/decide", {"rank": 0, "action": "keep", "revision": 0})
        assert status == 409 and answer["card"]["action"] == "remove"
        assert second.process.stderr is not None
        assert (
            second.process.stderr.readline()
            == f"port {first.port} is in use; using {second.port}\n"
        )
