"""Ask other workers for a row from the thread that serves, without a thread that waits for it.

To pass a look-up on by a thread took much of what it takes of the worker: the threads give each
other Python's interpreter twice (docs/decisions/0125). So a response is taken here as it comes. It
is one attempt only: whatever goes wrong is an error, and its read is left to the threads, which try
again within its time (`routed_reads`).

A connection is kept behind a whole response, as long as the blocking client keeps its own. One on
which something comes, or that ends, while nobody waits is closed: its bytes would be taken for the
next response.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import TypeAlias, cast

import httptools

from streams.common.addresses import Address
from streams.queries.endpoint_connections import (
    CONNECTIONS_MAX,
    IDLE_S,
    EndpointResponse,
    ReceivedMessage,
)

OnResponse: TypeAlias = Callable[[EndpointResponse | Exception], None]
"""Called once, with the response to a request, or with why there is none."""


class LoopConnections:
    """Sends requests to any worker on kept connections of the running loop.

    With a `context` they are of TLS, and the other side's certificate has to be for its host.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._idle: list[_LoopConnection] = []
        """This holds connections to all workers, the one that was used last at the end."""
        self._open: set[_LoopConnection] = set()
        self._opening_count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    async def send_request(
        self, address: Address, request: bytes, timeout_s: float
    ) -> EndpointResponse:
        """Return the response to a request, which has no body.

        Raises OSError or httptools.HttpParserError if there is none within `timeout_s`, and where
        CONNECTIONS_MAX wait for responses.
        """
        self._close_idle()
        async with asyncio.timeout(timeout_s):
            connection = self._take_idle(address) or await self._open_connection(address)
            response = await connection.exchange_message(request)
        self._keep_or_close(connection)
        return response

    def send_on_idle(
        self, address: Address, request: bytes, timeout_s: float, on_response: OnResponse
    ) -> bool:
        """Send a request if a connection to a worker is idle; return whether one was.

        `on_response` is called later, by the running loop, and needs no task that waits.
        """
        self._close_idle()
        if (connection := self._take_idle(address)) is None:
            return False

        def finish_exchange(found: EndpointResponse | Exception) -> None:
            limit.cancel()
            self._keep_or_close(connection)
            on_response(found)

        limit = asyncio.get_running_loop().call_later(timeout_s, connection.close)
        connection.send_message(request, finish_exchange)
        return True

    def _keep_or_close(self, connection: _LoopConnection) -> None:
        """Keep a connection that has had its response, if it may be kept."""
        if connection.may_be_kept and not self._is_closed:
            connection.used_at_s = time.monotonic()
            self._idle.append(connection)
        else:
            connection.close()

    def _close_idle(self) -> None:
        """Close what has been idle for too long, to workers that nobody asks any more too."""
        oldest_s = time.monotonic() - IDLE_S
        while self._idle and self._idle[0].used_at_s < oldest_s:
            self._close_oldest()

    def _close_oldest(self) -> None:
        """Close the connection that has been idle for longest: its place is free at once."""
        connection = self._idle.pop(0)
        self._open.discard(connection)
        connection.close()

    def _take_idle(self, address: Address) -> _LoopConnection | None:
        """Return the idle connection to a worker that was used last, which is idle no more."""
        for index in reversed(range(len(self._idle))):
            if self._idle[index].address == address:
                return self._idle.pop(index)
        return None

    async def _open_connection(self, address: Address) -> _LoopConnection:
        """Return a new connection to a worker, for which an idle one may have to go.

        Raises OSError.
        """
        if self._idle and len(self._open) + self._opening_count >= CONNECTIONS_MAX:
            self._close_oldest()
        if self._is_closed or len(self._open) + self._opening_count >= CONNECTIONS_MAX:
            raise ConnectionRefusedError(f"{CONNECTIONS_MAX} connections are open")
        self._loop = asyncio.get_running_loop()
        self._opening_count += 1
        try:
            _, connection = await self._loop.create_connection(
                lambda: _LoopConnection(self._forget_connection, address),
                *address,
                ssl=self._context,
                server_hostname=None if self._context is None else address[0],
            )
        finally:
            self._opening_count -= 1
        self._open.add(connection)
        if self._is_closed:  # meanwhile
            connection.close()
            raise ConnectionRefusedError("connections are being closed")
        return connection

    def _forget_connection(self, connection: _LoopConnection) -> None:
        """Keep a connection that has ended no more."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def close(self) -> None:
        """Let the loop close all connections; it may be called on any thread."""
        self._is_closed = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._close_all)

    def _close_all(self) -> None:
        for connection in [*self._open]:
            connection.close()


class _LoopConnection(asyncio.Protocol):
    """Represents one connection to a worker; `on_end` is called when it has ended."""

    def __init__(self, on_end: Callable[[_LoopConnection], None], address: Address) -> None:
        self.address = address
        self.used_at_s = 0.0
        self.may_be_kept = False
        self._on_end = on_end
        self._on_response: OnResponse | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what requests are written to."""
        self._transport = cast("asyncio.Transport", transport)

    async def exchange_message(self, request: bytes) -> EndpointResponse:
        """Send a request, and return its response. Raises OSError, httptools.HttpParserError.

        After an error, and where nobody waits for the response any more, the connection is closed.
        """
        waiting: asyncio.Future[EndpointResponse] = asyncio.get_running_loop().create_future()

        def settle_exchange(found: EndpointResponse | Exception) -> None:
            if waiting.done():
                return  # nobody waits any more
            if isinstance(found, Exception):
                waiting.set_exception(found)
            else:
                waiting.set_result(found)

        try:
            self.send_message(request, settle_exchange)
            return await waiting
        except BaseException:
            self.close()
            raise

    def send_message(self, request: bytes, on_response: OnResponse) -> None:
        """Send a request; `on_response` is called with its response, or what stands against it."""
        self._message = ReceivedMessage()
        self._parser = httptools.HttpResponseParser(self._message)
        self._on_response = on_response
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Take a part of the response."""
        if self._on_response is None:
            self.close()  # nobody has asked for this
            return
        try:
            self._parser.feed_data(data)
            self._message.check_bounds(len(data))
        except httptools.HttpParserError as error:
            self._finish_exchange(error)
            return
        if self._message.is_whole:
            response = self._message.create_response(self._parser.get_status_code())
            self.may_be_kept = response.may_keep_connection()
            self._finish_exchange(response)

    def _finish_exchange(self, found: EndpointResponse | Exception) -> None:
        """Hand the response, or why there is none, to who has sent the request."""
        on_response, self._on_response = self._on_response, None
        if isinstance(found, Exception):
            self.close()
        if on_response is not None:
            on_response(found)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let a request that has no response fail."""
        self.may_be_kept = False
        problem = "the connection was closed before the response's end"
        self._finish_exchange(ConnectionResetError(problem))
        self._on_end(self)

    def close(self) -> None:
        """Close the connection."""
        self.may_be_kept = False
        self._transport.abort()
