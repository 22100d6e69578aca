"""`oddly review` as a process of its own, to be killed."""

from __future__ import annotations

import http.client
import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.command import start


class Server:
    """A running review, and a client that holds its token."""

    def __init__(self, run: Path, *options: object) -> None:
        self.process: subprocess.Popen[str] = start("review", run, "--port", 0, *options)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("review at"):
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read())
        self.link = line.split()[-1]
        parts = urlsplit(self.link)
        assert parts.port is not None
        self.port = parts.port
        self.token = parse_qs(parts.query)["token"][0]

    def ask(self, path: str, body: object = None) -> tuple[int, Any]:
        """One request over a connection of its own: status and JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {
            "Cookie": f"oddly_review_{self.port}={self.token}",
            "Origin": f"http://127.0.0.1:{self.port}",
            "Content-Type": "application/json",
        }
        try:
            sent = None if body is None else json.dumps(body)
            connection.request("GET" if body is None else "POST", path, sent, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def kill(self) -> None:
        """kill -9: no chance to tidy up."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
