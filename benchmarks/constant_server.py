"""Answer each request of HTTP with the same response: `python -m benchmarks.constant_server`.

    python -m benchmarks.constant_server PORT uvicorn      by an ASGI application
    python -m benchmarks.constant_server PORT httptools    where the parser has met a request's end

It tells how much of a query's processor time is the server's, whatever the query: with uvicorn,
httptools and uvloop, as a worker has them, and with the last two alone.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any, Literal, cast

import httptools
import uvicorn
import uvloop

from tests.processes import ServerProcess, free_ports

Way = Literal["uvicorn", "httptools"]

_ROW = b'{"key":"key-0001","value":10,"timestamp_ms":1764403200000}\n'
_HEADERS = (
    (b"millrace-position", b"bench-query-costs-0:1000"),
    (b"millrace-partitions", b"0"),
    (b"millrace-age-ms", b"100"),
    (b"content-length", b"%d" % len(_ROW)),
    (b"content-type", b"application/x-ndjson"),
)
_HEAD = b"".join(b"%b: %b\r\n" % header for header in _HEADERS)
_RESPONSE = b"HTTP/1.1 200 OK\r\n%b\r\n%b" % (_HEAD, _ROW)


class ConstantServer(ServerProcess):
    """Represents a process that answers each request at `address` with the same row."""

    def __init__(self, way: Way) -> None:
        super().__init__(f"constant-{way}")
        [port] = free_ports(1)
        self.address = ("127.0.0.1", port)
        self.spawn([sys.executable, "-m", "benchmarks.constant_server", str(port), way])


class _ParsingProtocol(asyncio.Protocol):
    """Answers each request of a connection when its end is parsed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what responses are written to."""
        self._transport = cast("asyncio.WriteTransport", transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        """Parse a part of a request."""
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """Take the target of a request."""

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header of a request."""

    def on_message_complete(self) -> None:
        """Answer a request."""
        self._transport.write(_RESPONSE)


async def _send_response(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request (ASGI)."""
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _ROW})


async def serve_constant(port: int, way: Way) -> None:
    """Serve until the process is ended."""
    if way == "httptools":
        loop = asyncio.get_running_loop()
        server = await loop.create_server(_ParsingProtocol, "127.0.0.1", port)
        await server.serve_forever()
    config = uvicorn.Config(
        _send_response,
        log_config=None,
        access_log=False,
        lifespan="off",
        http="httptools",
        ws="none",
        server_header=False,
    )
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        bound.bind(("127.0.0.1", port))
        await uvicorn.Server(config).serve(sockets=[bound])


if __name__ == "__main__":
    uvloop.run(serve_constant(int(sys.argv[1]), cast(Way, sys.argv[2])))
