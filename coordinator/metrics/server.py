"""Serve the figures to Prometheus by an HTTP server of its own.

A scrape shares the interpreter with the event loop, which waits for one switch of threads at a
time, however many figures there are. It is late on a machine that is busy, so it is the plain text
of prometheus_client, which takes half the time of its OpenMetrics, compressed as fast as gzip can.
`python -m benchmarks.scrapes` measures all of that.
"""

from __future__ import annotations

import gzip
import logging
import re
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, TypeAlias

from prometheus_client import CollectorRegistry, generate_latest

from coordinator.metrics.broker_figures import BrokerCollector, MeasuredBroker

Port: TypeAlias = int
StopServer: TypeAlias = Callable[[], None]

log = logging.getLogger(__name__)

# Of what generate_latest writes, whose newer types of content say more of escaping.
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_REFUSAL = re.compile(r"q=0(\.0*)?")


def start_metrics_server(broker: MeasuredBroker, host: str, port: int) -> tuple[Port, StopServer]:
    """Serve metrics at an address of this machine; return the port and a function that stops it.

    Port 0 stands for any free one.

    Raises: OSError if the port is taken, or the address isn't this machine's.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(BrokerCollector(broker))
    server = _create_server(host, port, registry)
    thread = Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()

    def stop_server() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, stop_server


def _create_server(host: str, port: int, registry: CollectorRegistry) -> ThreadingHTTPServer:
    """Return a server that answers each GET with all figures, whatever its path."""

    class ScrapeHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                body = generate_latest(registry)
            except Exception:
                log.exception("metrics: the figures can't be collected")
                self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
                return
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", _CONTENT_TYPE)
            if _accepts_gzip(self.headers.get("Accept-Encoding", "")):
                body = gzip.compress(body, compresslevel=1)
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Log nothing: scrapes come often."""

    class MetricsServer(ThreadingHTTPServer):
        address_family, address = _find_address(host, port)

        def handle_error(self, request: Any, client_address: Any) -> None:
            if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
                super().handle_error(request, client_address)  # else the client went away

    return MetricsServer((MetricsServer.address, port), ScrapeHandler)


def _find_address(host: str, port: int) -> tuple[socket.AddressFamily, str]:
    """Return the family of the first address of a host, and that address. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = found[0]
    return family, str(address[0])


def _accepts_gzip(header: str) -> bool:
    """Return whether `Accept-Encoding` has gzip among its codings, with a weight above 0."""
    for each in header.lower().split(","):
        coding, *parameters = (part.strip() for part in each.split(";"))
        if coding == "gzip":
            return not any(_REFUSAL.fullmatch(parameter) for parameter in parameters)
    return False
