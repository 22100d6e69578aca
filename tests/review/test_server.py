"""Over HTTP: the routes, and who is turned away."""

from __future__ import annotations

import io
import json
import socket
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from oddly.errors import InputError
from oddly.records import Run
from oddly.review.server import listen
from oddly.review.session import Session
from tests.review.conftest import TOKEN, Serve, Site, paint, write_run


def test_from_the_link_to_a_decision(site: Site, run: Run) -> None:
    start = site.client.get("/api/start").json()
    assert start["card"]["given"] == "cat" and start["card"]["suggested"] == "dog"
    answer = site.decide(0, "suggestion").json()
    assert answer["saved"] == {
        **start["card"],
        "revision": 1,
        "action": "suggestion",
        "label": "dog",
    }
    assert answer["card"]["rank"] == 1 and answer["progress"]["decided"] == 1
    undone = site.client.post("/api/undo", json={"revision": 1}).json()
    assert undone["card"]["rank"] == 0 and undone["card"]["action"] is None
    assert site.client.post("/api/undo", json={"revision": 1}).status_code == 409
    assert site.client.get("/api/suspect/4").json()["card"]["id"] == "dog/4.png"
    assert site.client.get("/api/next", params={"after": 2}).json()["card"]["rank"] == 3
    grid = site.client.get("/api/suspects", params={"count": 2, "show": "all"}).json()
    assert [card["rank"] for card in grid["cards"]] == [0, 1] and grid["next"] == 2
    assert site.client.get("/api/classes").json() == ["cat", "dog", "emu"]


def test_an_acknowledged_decision_is_in_the_file(site: Site, run: Run) -> None:
    site.decide(0, "remove").raise_for_status()
    with sqlite3.connect(run.path / "decisions.sqlite") as database:
        rows = database.execute("SELECT id, action, label FROM log").fetchall()
    database.close()
    assert rows == [("cat/0.png", "remove", None)]


def test_two_tabs_on_one_suspect(site: Site) -> None:
    seen = site.client.get("/api/start").json()["card"]["revision"]
    assert site.decide(0, "keep", seen).status_code == 200
    late = site.decide(0, "remove", seen)
    assert late.status_code == 409 and "not saved" in late.json()["error"]
    now = late.json()["card"]
    assert (now["rank"], now["action"], now["label"], now["revision"]) == (0, "keep", "cat", 1)
    assert site.decide(0, "remove", now["revision"]).status_code == 200
    # The answer to a decision got lost; the page sends it again.
    lost = site.decide(0, "remove", now["revision"])
    assert lost.status_code == 200 and lost.json()["again"]
    assert not site.decide(1, "remove").json()["again"]


@pytest.mark.parametrize("number", ["--5", "-", "1e3", "²", "9" * 13])
def test_what_is_no_number_is_told_so(site: Site, number: str) -> None:
    answer = site.client.get("/api/next", params={"after": number})
    assert answer.status_code == 400 and answer.json() == {"error": "after is not a number"}
    assert len(site.client.get("/api/suspects", params={"count": -5}).json()["cards"]) == 1


def test_pictures(site: Site, photos: Path) -> None:
    answer = site.client.get("/image/0")
    assert answer.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(answer.content)).size == (8, 6)
    paint(photos / "dog" / "1.png", size=(2000, 1000))
    assert Image.open(io.BytesIO(site.client.get("/image/1").content)).size == (1024, 512)
    assert Image.open(io.BytesIO(site.client.get("/image/1?x&small").content)).size == (224, 112)
    (photos / "emu" / "2.png").unlink()
    gone = site.client.get("/image/2")
    assert gone.status_code == 200 and gone.headers["content-type"] == "image/svg+xml"
    assert "file not found" in gone.text


@pytest.mark.parametrize(
    "path",
    [
        *("/image/../../etc/passwd", "/image/%2e%2e%2fsecret.png", "/image/..%2f..%2fsecret.png"),
        *("/image//etc/passwd", "/image/-1", "/image/999", "/image/cat/0.png", "/image/0/../x"),
        *("/static/../server.py", "/static/%2e%2e%2fserver.py", "/static//etc/passwd"),
        *("/static/index.html", "/decisions.sqlite", "/static/..%5cserver.py", "/api/suspect/77"),
    ],
)
def test_no_path_leads_anywhere_else(site: Site, path: str) -> None:
    # http.client sends the path as it stands; httpx would tidy it up
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=10)
    cookie = f"oddly_review_{site.port}={TOKEN}"
    connection.request("GET", path, headers={"Cookie": cookie})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status in (400, 404)
    assert b"import" not in body and b"root:" not in body


def test_ids_that_lead_outside_show_no_picture(tmp_path: Path, photos: Path, serve: Serve) -> None:
    paint(tmp_path / "secret.png")
    (photos / "link.png").symlink_to(tmp_path / "secret.png")
    ids = ["../secret.png", "link.png", str(tmp_path / "secret.png"), "%2e%2e/secret.png"]
    session = Session(write_run(tmp_path / "r", ids, photos))
    site = serve(session)
    for rank in range(len(ids)):
        answer = site.client.get(f"/image/{rank}")
        assert answer.headers["content-type"] == "image/svg+xml"
        assert "outside" in answer.text or "not found" in answer.text
    session.decisions.close()


def test_strangers_are_turned_away(site: Site) -> None:
    own = f"127.0.0.1:{site.port}"
    cookie = f"oddly_review_{site.port}={TOKEN}"
    attempts: list[tuple[str, dict[str, str], int]] = [
        ("/api/start", {"Host": own, "Cookie": cookie}, 200),
        ("/api/start", {"Host": f"localhost:{site.port}", "Cookie": cookie}, 200),
        ("/api/start", {"Host": own}, 403),  # no token
        ("/", {"Host": own}, 403),
        ("/image/0", {"Host": own}, 403),
        ("/?token=guess", {"Host": own}, 403),
        (f"/api/start?token={TOKEN}", {"Host": own}, 403),  # only the front door takes it
        ("/api/start", {"Host": own, "Cookie": f"oddly_review_{site.port}=guess"}, 403),
        ("/api/start", {"Host": "evil.example", "Cookie": cookie}, 403),  # DNS rebinding
        ("/api/start", {"Host": f"evil.example:{site.port}", "Cookie": cookie}, 403),
        ("/api/start", {"Host": "127.0.0.1", "Cookie": cookie}, 403),
        (f"/?token={TOKEN}", {"Host": f"evil.example:{site.port}"}, 403),
        ("/api/start", {"Host": own, "Cookie": cookie, "Origin": "http://evil.example"}, 403),
        ("/static/review.css", {"Host": own}, 200),
        ("/static/review.css", {"Host": "evil.example"}, 403),
    ]
    with httpx.Client(base_url=site.url) as stranger:
        for path, headers, status in attempts:
            assert stranger.get(path, headers=headers).status_code == status, (path, headers)


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "https://{}", "http://127.0.0.1", "http://{}.x"]
)
def test_only_our_own_page_decides(site: Site, origin: str | None) -> None:
    cookies = {f"oddly_review_{site.port}": TOKEN}
    own = f"127.0.0.1:{site.port}"
    headers = {} if origin is None else {"Origin": origin.format(own)}
    with httpx.Client(base_url=site.url, cookies=cookies, headers=headers) as other:
        asked = {"rank": 0, "action": "remove", "revision": 0}
        assert other.post("/api/decide", json=asked).status_code == 403
        assert other.request("DELETE", "/api/decide").status_code in (403, 405)
    assert site.client.get("/api/start").json()["progress"]["decided"] == 0


def test_the_link_becomes_a_strict_cookie_and_every_answer_is_strict(site: Site) -> None:
    page = site.client.get("/", params={"token": TOKEN})
    cookie = page.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    for answer in (page, site.client.get("/image/0"), site.client.get("/nothing")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers or answer.headers["server"] == "uvicorn"
    assert site.client.get("/api/start").headers["cache-control"] == "no-store"
    text = page.text
    assert "onclick" not in text and "style=" not in text and "<script>" not in text


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"7", b"{", b'{"rank": 0}', b"[" * 5000, b'{"rank": "0", "revision": 0}'),
        json.dumps({"rank": 0, "action": "relabel", "label": "zebra", "revision": 0}).encode(),
        json.dumps({"rank": 0, "action": "relabel", "label": ["cat"], "revision": 0}).encode(),
        json.dumps({"rank": True, "action": "remove", "revision": 0}).encode(),
        json.dumps({"rank": 0, "action": "remove", "revision": 0, "x": "y" * 20_000}).encode(),
    ],
)
def test_nonsense_is_one_line(site: Site, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = site.client.post("/api/decide", content=body, headers=headers)
    assert answer.status_code == 400 and "\n" not in answer.json()["error"]
    assert site.client.get("/api/start").json()["progress"]["decided"] == 0


def test_forms_cannot_post(site: Site) -> None:
    asked = '{"rank": 0, "action": "remove", "revision": 0}'
    headers = {"Content-Type": "text/plain"}
    assert site.client.post("/api/decide", content=asked, headers=headers).status_code == 400


def test_a_disk_that_takes_nothing_is_told(run: Run, serve: Serve) -> None:
    session = Session(run)
    site = serve(session)
    session.decisions._database.execute("PRAGMA query_only = ON")
    answer = site.decide(0, "remove")
    assert answer.status_code == 503 and "nothing was saved" in answer.json()["error"]
    assert site.client.get("/api/start").json()["progress"]["decided"] == 0
    session.decisions.close()


def test_a_port_in_use_gives_the_next() -> None:
    with listen(0) as first:
        port = first.getsockname()[1]
        with listen(port) as second:
            assert port < second.getsockname()[1] < port + 50
            assert second.getsockname()[0] == "127.0.0.1"


def test_no_port_left() -> None:
    sockets: list[Any] = []
    try:
        for port in range(65530, 65536):
            sock = socket.socket()
            sockets.append(sock)
            sock.bind(("127.0.0.1", port))
            sock.listen(1)
        with pytest.raises(InputError, match="no free port from 65530 up"):
            listen(65530)
    finally:
        for sock in sockets:
            sock.close()


def test_answers_do_not_wait_for_acknowledgements(site: Site) -> None:
    """Nagle's algorithm against delayed acknowledgements costs 40 ms an answer."""
    seconds = []
    for _ in range(20):
        begun = time.perf_counter()
        site.client.get("/api/classes")
        seconds.append(time.perf_counter() - begun)
    assert min(seconds) < 0.03


def test_who_waits_for_the_decisions_keeps_nobody_else_waiting(
    run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may write to the file for seconds: here just after a tab has caught up."""
    session = Session(run)
    site = serve(session)
    monkeypatch.setattr(session.decisions, "refresh", lambda: None)
    with ThreadPoolExecutor(1) as tab:
        with session.decisions._lock:
            waiting = tab.submit(site.client.get, "/api/suspect/0")
            time.sleep(0.2)
            with httpx.Client(cookies=site.client.cookies, timeout=2) as other:
                assert other.get(f"{site.url}/api/classes").status_code == 200
            assert not waiting.done()
        assert waiting.result().status_code == 200
    session.decisions.close()


def test_a_file_of_decisions_that_was_deleted_takes_no_more(site: Site, run: Run) -> None:
    site.decide(0, "remove").raise_for_status()
    (run.path / "decisions.sqlite").unlink()
    answer = site.decide(1, "remove")
    told = "nothing was saved: the file of decisions is missing or was replaced"
    assert answer.status_code == 503 and answer.json()["error"].startswith(told)
    looked = site.client.get("/api/suspect/1")  # which would have saved nothing anyway
    assert looked.status_code == 503 and looked.json()["error"].startswith("the file of decisions")


def test_many_tabs_at_once(tmp_path: Path, photos: Path, serve: Serve) -> None:
    ids = [f"{i}.png" for i in range(10_000)]
    session = Session(write_run(tmp_path / "many", ids, photos))
    site = serve(session)

    def decide(rank: int) -> int:
        return int(site.decide(rank, "remove").status_code)

    with ThreadPoolExecutor(8) as tabs:
        assert set(tabs.map(decide, range(1000))) == {200}
    assert site.client.get("/api/start").json()["progress"]["decided"] == 1000
    session.decisions.close()
