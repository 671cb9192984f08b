"""The worker's HTTP answers, on this machine only: GET /health, /live and /metrics.

/health and /live say 200 or 503 and the whole health as JSON; /metrics is for Prometheus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from streams.errors import ConfigError
from streams.runtime.host import Host

ADDRESS = "127.0.0.1"


class Answer(NamedTuple):
    """Status, content type, body."""

    status: int
    kind: str
    body: bytes


class Endpoint:
    """Answers by path until `close`. Raises ConfigError where the port can't be had."""

    def __init__(
        self, setting: str, port: int, answers: Mapping[str, Callable[[], Answer]], host: Host
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = answers.get(self.path.partition("?")[0])
                found = answer() if answer else _no_such_path(answers)
                self.send_response(found.status)
                self.send_header("Content-Type", found.kind)
                self.send_header("Content-Length", str(len(found.body)))
                self.end_headers()
                self.wfile.write(found.body)

            def log_message(self, *arguments: object) -> None:
                pass  # who asks how we are is no event

        try:
            self._server = ThreadingHTTPServer((ADDRESS, port), Handler)
        except OSError as error:
            raise ConfigError(f"{setting} {port}: {error.strerror}") from error
        self.port: int = self._server.server_address[1]
        self._serving = host.spawn(f"{setting}-{port}", self._server.serve_forever)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._serving.join()


def _no_such_path(answers: Mapping[str, Callable[[], Answer]]) -> Answer:
    return Answer(404, "text/plain", f"there is {', '.join(answers)}\n".encode())
