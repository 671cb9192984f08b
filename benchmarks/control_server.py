"""Answer each request of HTTP with the same row: `python -m benchmarks.control_server PORT`.

`benchmarks.queries` sends it the requests that workers get at other times. So what the client costs
on the same machine is in both, and the difference is what workers lose.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop

_END_OF_HEAD = b"\r\n\r\n"
_ROW = b'{"key":"key-000001","value":1,"timestamp_ms":1764403200000}\n'
_ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ncontent-length: %d\r\n\r\n%b"
    % (
        len(_ROW),
        _ROW,
    )
)


class _Answering(asyncio.Protocol):
    """Answers the requests of one connection, each of which comes as one piece."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what answers are written to."""
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer the requests in `data`."""
        self._transport.write(_ANSWER * data.count(_END_OF_HEAD))


async def serve_rows(port: int) -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve_rows(int(sys.argv[1])))
