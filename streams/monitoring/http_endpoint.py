"""Serve the worker's HTTP endpoints: GET /health, /live and /metrics.

/health and /live answer 200 or 503 with the whole health as JSON; /metrics is for Prometheus.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from streams.common.host import Host
from streams.errors import ConfigError


class HttpResponse(NamedTuple):
    """Represents an HTTP response: status, content type and body."""

    status: int
    content_type: str
    body: bytes


class HttpEndpoint:
    """Serves GET requests on a port, with one function for each path, until `close`.

    `address` is one of this machine's, or 0.0.0.0 for all of them; `setting` is the port's name in
    messages. Raises ConfigError if they are not available.
    """

    def __init__(
        self,
        setting: str,
        address: str,
        port: int,
        responders: Mapping[str, Callable[[], HttpResponse]],
        host: Host,
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = responders.get(self.path.partition("?")[0])
                response = answer() if answer else _create_not_found_response(responders)
                self.send_response(response.status)
                self.send_header("Content-Type", response.content_type)
                self.send_header("Content-Length", str(len(response.body)))
                self.end_headers()
                self.wfile.write(response.body)

            def log_message(self, *arguments: object) -> None:
                pass  # probes are too frequent to be logged

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

            def handle_error(self, request: Any, client_address: Any) -> None:
                if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
                    super().handle_error(request, client_address)  # else the client went away

        try:
            self._server = Server((address, port), Handler)
        except OSError as error:
            raise ConfigError(f"{setting} {port} on {address}: {error.strerror}") from error
        self.port: int = self._server.server_address[1]
        self._server_thread = host.spawn_thread(f"{setting}-{port}", self._server.serve_forever)

    def close(self) -> None:
        """Stop serving and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._server_thread.join()


def _create_not_found_response(
    responders: Mapping[str, Callable[[], HttpResponse]],
) -> HttpResponse:
    """Return a 404 response that lists the paths there are."""
    return HttpResponse(404, "text/plain", f"there is {', '.join(responders)}\n".encode())
