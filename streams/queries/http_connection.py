"""Bound what one connection may take: the time in which a request arrives, and an answer leaves.

    what a client does                            what becomes of it
    connects and sends no whole request           disconnected after ARRIVAL_S
    sends a request byte by byte                  the same
    has its answer, sends a part of another one   the same, from the first byte on
    takes nothing of what it has asked for        disconnected after STALL_S
    connects where CONNECTIONS_MAX are open       disconnected, and counted
    still takes an answer when the worker stops   disconnected after SHUTDOWN_S
    sends what is no HTTP                         400, by uvicorn
    sends a head of more than HEAD_SIZE_MAX       400

A client that has sent one request may keep its connection for the next one for as long as uvicorn's
keep-alive allows. Without these a few clients that are slow, or mean to be, would take all files
that the worker may open, those of its stores too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from streams.runtime.threads.query_measurements import QueryMeasurements

ARRIVAL_S = 10.0
STALL_S = 30.0
SHUTDOWN_S = 1.0
CONNECTIONS_MAX = 512
HEAD_SIZE_MAX = 65_536
"""The bytes that the line and the headers of a request may have: httptools has no bound."""

_UVICORN_LOG = logging.getLogger(f"{__name__}.uvicorn")
# What clients get wrong would fill the log, and why a response ends early is told by `row_stream`.
_UVICORN_LOG.setLevel(logging.ERROR)
_UVICORN_LOG.addFilter(lambda record: "without completing response" not in record.getMessage())


class HttpConnection(HttpToolsProtocol):
    """Serves one connection as uvicorn does, within bounds."""

    arrival_s = ARRIVAL_S
    stall_s = STALL_S
    connections_max = CONNECTIONS_MAX

    def __init__(
        self, *arguments: Any, measurements: QueryMeasurements | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._measurements = measurements or QueryMeasurements()
        self.logger = _UVICORN_LOG
        self._head_size = 0
        """This counts the bytes of a head that is not whole, and those between the parts of a body,
        but for what has come together with the end of the head or of the request before."""
        self._arrival: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > self.connections_max:
            self._measurements.refused["connections"] += 1
            transport.abort()
            return
        self._limit_arrival_time()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        self._head_size += len(data)
        super().data_received(data)
        if self._head_size > HEAD_SIZE_MAX and not self.transport.is_closing():
            self.send_400_response("Headers are too long.")
        self._limit_arrival_time()

    def on_headers_complete(self) -> None:
        """Answer a request, whose body nobody waits for. Raises ValueError for too long a head."""
        self._head_size = 0
        if self._measure_head_bytes() > HEAD_SIZE_MAX:
            raise ValueError("the head is too long")  # which is a 400
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that a request is whole."""
        super().on_message_complete()
        self._head_size = 0

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        super().on_body(body)
        self._head_size = max(self._head_size - len(body), 0)

    def _measure_head_bytes(self) -> int:
        """Return the bytes of a whole head as it is usually written, with its last, empty line."""
        line = len(self.parser.get_method()) + len(self.url) + len(b"  HTTP/1.1\r\n")
        return line + sum(len(n) + len(v) + len(b": \r\n") for n, v in self.headers) + len(b"\r\n")

    def shutdown(self) -> None:
        """End the connection with its response, or soon."""
        super().shutdown()
        self.loop.call_later(SHUTDOWN_S, self.transport.abort)

    def pause_writing(self) -> None:
        """Wait for the client to take what was sent, within bounds."""
        super().pause_writing()
        self._stall = self.loop.call_later(self.stall_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on to send."""
        super().resume_writing()
        self._cancel_stall_limit()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._cancel_arrival_limit()
        self._cancel_stall_limit()

    def _limit_arrival_time(self) -> None:
        """Bound the time until a response begins, wherever nothing else bounds it.

        While one runs nothing has to arrive; a part of the next request may. Behind it uvicorn's
        keep-alive bounds the time, up to the first byte that comes, be it of a blank line or of a
        body that nobody waits for.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel_arrival_limit()
        elif (
            self._arrival is None
            and self.timeout_keep_alive_task is None
            and not self.transport.is_closing()
        ):
            self._arrival = self.loop.call_later(self.arrival_s, self.transport.abort)

    def _cancel_arrival_limit(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _cancel_stall_limit(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
