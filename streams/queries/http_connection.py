"""Bound what one connection may take: the time in which a request arrives, and an answer leaves.

    what a client does                            what becomes of it
    connects and sends no whole request           disconnected after ARRIVAL_S
    sends a request byte by byte                  the same
    takes nothing of what it has asked for        disconnected after STALL_S
    connects where CONNECTIONS_MAX are open       disconnected
    still takes an answer when the worker stops   disconnected after SHUTDOWN_S
    sends what is no HTTP, or endless headers     400, by uvicorn

A client that has sent one request may keep its connection for the next one for as long as uvicorn's
keep-alive allows. Without these a few clients that are slow, or mean to be, would take all files
that the worker may open, those of its stores too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

ARRIVAL_S = 10.0
STALL_S = 30.0
SHUTDOWN_S = 1.0
CONNECTIONS_MAX = 512

_UVICORN_LOG = logging.getLogger(f"{__name__}.uvicorn")
# What clients get wrong would fill the log, and why a response ends early is told by `row_stream`.
_UVICORN_LOG.setLevel(logging.ERROR)
_UVICORN_LOG.addFilter(lambda record: "without completing response" not in record.getMessage())


class HttpConnection(H11Protocol):
    """Serves one connection as uvicorn does, within bounds."""

    arrival_s = ARRIVAL_S
    stall_s = STALL_S
    connections_max = CONNECTIONS_MAX

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.logger = _UVICORN_LOG
        self._arrival: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > self.connections_max:
            transport.abort()
            return
        self._watch_arrival()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        super().data_received(data)
        self._watch_arrival()

    def on_response_complete(self) -> None:
        """Go on to the next request, of which a part may be here."""
        super().on_response_complete()
        self._watch_arrival()

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
        self._cancel_stall()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._cancel_arrival()
        self._cancel_stall()

    def _watch_arrival(self) -> None:
        """Bound the time of a request that has begun to arrive and is not whole.

        A connection without one is bounded by this before its first request, and by keep-alive
        after it.
        """
        is_idle = self.timeout_keep_alive_task is not None
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED) or is_idle:
            self._cancel_arrival()
        elif self._arrival is None and not self.transport.is_closing():
            self._arrival = self.loop.call_later(self.arrival_s, self.transport.abort)

    def _cancel_arrival(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _cancel_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
