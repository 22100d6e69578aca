"""The web server of the review: routes, and starting it. It only listens on 127.0.0.1."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import secrets
import socket
import sqlite3
import warnings
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from PIL import Image
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from oddly.errors import InputError
from oddly.pictures import Unreadable
from oddly.review.decisions import Stale
from oddly.review.guard import Guard
from oddly.review.images import LARGEST_SIDE, encode
from oddly.review.session import BadRequest, Session

ADDRESS = "127.0.0.1"
PORTS_TRIED = 50
BODY_LIMIT = 16_384
GRID_LIMIT = 200
LARGE, SMALL = LARGEST_SIDE, 224  # longest side of a picture, alone and in the grid
DECODERS = 2  # pictures decoded at the same time; each may need hundreds of megabytes
SCRIPTS = ("review.js", "choose.js", "grid.js", "undo.js", "keys.js")
STATIC = {
    "review.css": "text/css; charset=utf-8",
    **dict.fromkeys(SCRIPTS, "text/javascript; charset=utf-8"),
    "icon.svg": "image/svg+xml",
}
PLACEHOLDER = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 320" width="480" height="320">'
    '<path d="M200 110h80v60h-80zM200 155l22-20 18 15 14-11 26 22" fill="none" stroke="#76808a"'
    ' stroke-width="4"/><text x="240" y="222" text-anchor="middle" fill="#76808a" font-size="24"'
    ' font-family="system-ui, sans-serif">No picture</text><text x="240" y="252"'
    ' text-anchor="middle" fill="#76808a" font-size="18" font-family="system-ui, sans-serif">'
    "{}</text></svg>"
)


class Pages:
    """The routes of one review."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._decoders = asyncio.Semaphore(DECODERS)
        folder = Path(__file__).parent / "static"
        self._index = (folder / "index.html").read_bytes()
        self._static = {name: (folder / name).read_bytes() for name in STATIC}

    def routes(self) -> list[Route]:
        return [
            Route("/", self.index),
            Route("/static/{name}", self.static),
            Route("/api/start", self.start),
            Route("/api/classes", self.classes),
            Route("/api/suspect/{rank:int}", self.suspect),
            Route("/api/next", self.next),
            Route("/api/suspects", self.suspects),
            Route("/api/decide", self.decide, methods=["POST"]),
            Route("/api/undo", self.undo, methods=["POST"]),
            Route("/image/{rank:int}", self.image),
        ]

    async def index(self, request: Request) -> Response:
        return Response(self._index, media_type="text/html")

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            return PlainTextResponse("No such file.", 404)
        return Response(self._static[name], headers={"Content-Type": STATIC[name]})

    async def start(self, request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.session.overview))

    async def classes(self, request: Request) -> Response:
        return JSONResponse(self.session.suspects.class_names)

    async def suspect(self, request: Request) -> Response:
        rank = request.path_params["rank"]
        await run_in_threadpool(self.session.decisions.refresh)
        return await self._step(rank)

    async def next(self, request: Request) -> Response:
        after, show = _number(request, "after", -1), request.query_params.get("show", "open")
        await run_in_threadpool(self.session.decisions.refresh)
        return await self._step(self.session.find(after, show))

    async def suspects(self, request: Request) -> Response:
        start, show = _number(request, "start", 0), request.query_params.get("show", "open")
        count = max(1, min(_number(request, "count", 60), GRID_LIMIT))
        return JSONResponse(await run_in_threadpool(self.session.cards, start, count, show))

    async def decide(self, request: Request) -> Response:
        asked = await _body(request)
        rank, seen, label = asked.get("rank"), asked.get("revision"), asked.get("label")
        if type(rank) is not int or type(seen) is not int or not isinstance(label, str | None):
            raise BadRequest("a decision needs a rank, an action and a revision")
        decide, session = self.session.decide, self.session
        try:
            made = await run_in_threadpool(decide, rank, str(asked.get("action")), label, seen)
        except Stale:
            told = "decided in another tab or window in the meantime; your choice was not saved"
            return await self._step(rank, 409, error=told)
        saved = await run_in_threadpool(session.card, rank)
        return await self._step(session.find(rank, "open"), saved=saved, again=made.again)

    async def undo(self, request: Request) -> Response:
        revision = (await _body(request)).get("revision")
        if type(revision) is not int:
            raise BadRequest("an undo needs a revision")
        try:
            rank = await run_in_threadpool(self.session.undo, revision)
        except Stale:
            told = "that decision has already been changed"
            return await self._step(None, 409, error=told)
        return await self._step(rank)

    async def _step(self, rank: int | None, status: int = 200, **more: Any) -> Response:
        """The response with a suspect. In a thread, since another process may lock the file."""
        following = await run_in_threadpool(self.session.step, rank)
        return JSONResponse({**more, **following}, status)

    async def image(self, request: Request) -> Response:
        rank = request.path_params["rank"]
        if rank >= len(self.session.suspects):
            raise BadRequest("no such suspect")
        side = SMALL if "small" in request.query_params else LARGE
        async with self._decoders:
            content, kind = await run_in_threadpool(self._picture, rank, side)
        headers = {"Content-Type": kind, "Cache-Control": "private, max-age=300"}
        return Response(content, headers=headers)

    def _picture(self, rank: int, side: int) -> tuple[bytes, str]:
        try:
            return encode(self.session.images.read(self.session.suspects.ids[rank]), side)
        except Unreadable as error:
            return PLACEHOLDER.format(escape(str(error))).encode(), "image/svg+xml"


def create_app(session: Session, token: str, port: int) -> ASGIApp:
    """The whole application, wrapped in the guard."""
    handlers: dict[Any, Any] = {BadRequest: _bad_request, sqlite3.Error: _not_written}
    return Guard(
        Starlette(routes=Pages(session).routes(), exception_handlers=handlers), token, port
    )


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1 at `port`, or at the next free one (0: any)."""
    for candidate in range(port, min(port + PORTS_TRIED, 65536)):
        # With IPPROTO_TCP, asyncio turns off Nagle's algorithm, which costs 40 ms per response.
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # restart right after a kill
        try:
            sock.bind((ADDRESS, candidate))
            sock.listen(128)
            return sock
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRINUSE:
                reason = error.strerror or str(error)
                raise InputError(f"port {candidate}: {reason.lower()}; try --port 8642") from None
    raise InputError(f"no free port from {port} up; choose another with --port")


def serve(session: Session, port: int, announce: Callable[[str, int], None]) -> None:
    """Serve until Ctrl-C; `announce` is called with the link and the port that was found."""
    import uvicorn

    # Ignore Pillow's warning about large pictures; `images` decides what is too large.
    warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
    with listen(port) as sock:
        port = sock.getsockname()[1]
        token = secrets.token_urlsafe(32)
        config = uvicorn.Config(
            create_app(session, token, port),
            log_level="warning",
            access_log=False,
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        announce(f"http://{ADDRESS}:{port}/?token={token}", port)
        uvicorn.Server(config).run(sockets=[sock])


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object in the request; refuse large bodies and other content types."""
    if request.headers.get("content-type") != "application/json":
        raise BadRequest("expected JSON")
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > BODY_LIMIT:
            raise BadRequest("too long")
    try:
        return dict(json.loads(content))
    except (ValueError, TypeError, RecursionError):
        raise BadRequest("not a JSON object") from None


def _number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name, str(default))
    if not re.fullmatch("-?[0-9]{1,11}", given):
        raise BadRequest(f"{name} is not a number")
    return int(given)


async def _bad_request(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def _not_written(request: Request, error: Exception) -> Response:
    told = "nothing was saved: " if request.method == "POST" else ""
    return JSONResponse({"error": f"{told}{error}"}, 503)
