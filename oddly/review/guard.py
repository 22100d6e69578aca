"""Access control: only a browser that opened the printed link, and only from our own page.

This protects against other sites in the same browser. The Host header must name this server (DNS
rebinding). A request that changes something must come from our own page (Origin). Everything except
stylesheet and scripts needs the token, which the link exchanges for a SameSite=Strict cookie.
"""

from __future__ import annotations

import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN_PATHS = "/static/"  # the same for everybody, nothing of the run in it
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Wraps the app: refuses other requests and adds security headers."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app = app
        self.token = token
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie = f"oddly_review_{port}"  # cookies know no ports: two reviews, two names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # no websockets here
            return
        request = Request(scope)
        fresh = request.url.path == "/" and self._is_token(request.query_params.get("token"))

        async def send_strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
                if fresh:
                    same_site = "Path=/; HttpOnly; SameSite=Strict"
                    headers.append("Set-Cookie", f"{self.cookie}={self.token}; {same_site}")
            await send(message)

        refusal = self._refuse(request, fresh)
        await (refusal or self.app)(scope, receive, send_strictly)

    def _refuse(self, request: Request, fresh: bool) -> Response | None:
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in self.hosts:
            return PlainTextResponse("This server only answers at its own address.", 403)
        if request.method not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("Method not allowed.", 405)
        foreign = origin != f"http://{host}"
        if foreign and (origin is not None or request.method == "POST"):
            return PlainTextResponse("Requests from other pages are refused.", 403)
        if request.url.path.startswith(OPEN_PATHS) or fresh:
            return None
        if self._is_token(request.cookies.get(self.cookie)):
            return None
        return PlainTextResponse("Open the link that `oddly review` printed in the terminal.", 403)

    def _is_token(self, given: str | None) -> bool:
        return given is not None and secrets.compare_digest(given.encode(), self.token.encode())
