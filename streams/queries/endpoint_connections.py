"""Ask workers over HTTP/1.1 on blocking connections that are kept open for the next request.

Most of what a look-up costs the worker that passes it on is the speaking of HTTP. So it is parsed
by httptools, in C, as on the other side, and a thread blocks in one call to send a request and
mostly in one to receive the response: each gives up Python's interpreter, and beside a busy stream
thread it takes a while to get that back (docs/decisions/0111).

what a request meets                                     what becomes of it
a kept connection that ends before a byte of a response  sent on another one: GET may be repeated
a connection that ends later, or that is refused         ConnectionError
no whole response in time                                TimeoutError
what is no HTTP                                          httptools.HttpParserError
a certificate that isn't trusted                         ssl.SSLError

After an error the connection is closed, or the next request would get the response of this one.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from threading import BoundedSemaphore, Lock
from typing import NamedTuple

import httptools

_RECEIVED_MAX = 65_536

CONNECTIONS_MAX = 64
"""The requests that are sent at a time, each on a connection."""
IDLE_S = 20.0
"""The seconds for which a connection is kept: fewer than the other side keeps it."""


class EndpointResponse(NamedTuple):
    """Holds a whole response; the names of its headers are in small letters."""

    status: int
    headers: Mapping[bytes, bytes]
    content: bytes


class EndpointConnections:
    """Sends requests to any worker on kept connections; it may be used by several threads.

    With a `context` they are of TLS, and the other side's certificate has to be for its host.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._lock = Lock()
        self._kept: defaultdict[tuple[str, int], list[_Connection]] = defaultdict(list)
        self._places = BoundedSemaphore(CONNECTIONS_MAX)
        self._is_closed = False

    def send_request(
        self, address: tuple[str, int], request: bytes, timeout_s: float
    ) -> EndpointResponse:
        """Return the response to a request, which has no body and may be sent twice.

        Raises OSError or httptools.HttpParserError if there is none within `timeout_s`.
        """
        give_up_at_s = time.monotonic() + timeout_s
        if not self._places.acquire(timeout=timeout_s):
            raise TimeoutError(f"{CONNECTIONS_MAX} other requests have no response yet")
        try:
            return self._send_on_any(address, request, give_up_at_s)
        finally:
            self._places.release()

    def _send_on_any(
        self, address: tuple[str, int], request: bytes, give_up_at_s: float
    ) -> EndpointResponse:
        """Send a request on a kept connection, or on a new one where none is of use any more."""
        while True:
            kept = self._take_kept(address)
            connection = kept or _Connection(address, self._context, give_up_at_s)
            try:
                response = connection.exchange_message(request, give_up_at_s)
            except BaseException as error:
                connection.close()
                is_late = isinstance(error, TimeoutError) or not isinstance(error, OSError)
                if kept is None or connection.has_received or is_late:
                    raise
                continue
            self._keep_connection(address, connection)
            return response

    def _take_kept(self, address: tuple[str, int]) -> _Connection | None:
        """Return the connection that was used last, unless even that has been idle for too long."""
        with self._lock:
            kept = self._kept[address]
            oldest_s = time.monotonic() - IDLE_S
            while kept and kept[0].used_at_s < oldest_s:
                kept.pop(0).close()
            return kept.pop() if kept else None

    def _keep_connection(self, address: tuple[str, int], connection: _Connection) -> None:
        """Keep a connection for the next request, if both sides do."""
        with self._lock:
            if connection.may_be_kept and not self._is_closed:
                self._kept[address].append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the connections that are kept, and others when their responses have come."""
        with self._lock:
            self._is_closed = True
            for kept in self._kept.values():
                for connection in kept:
                    connection.close()
            self._kept.clear()


class _Connection:
    """Represents one connection to a worker. Raises OSError if there is none in time."""

    def __init__(
        self, address: tuple[str, int], context: ssl.SSLContext | None, give_up_at_s: float
    ) -> None:
        self.used_at_s = 0.0
        self.has_received = self.may_be_kept = False
        opened = socket.create_connection(address, _measure_left_s(give_up_at_s))
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                opened.settimeout(_measure_left_s(give_up_at_s))
                opened = context.wrap_socket(opened, server_hostname=address[0])
        except BaseException:
            opened.close()
            raise
        self._socket = opened

    def exchange_message(self, request: bytes, give_up_at_s: float) -> EndpointResponse:
        """Send a request, and return its response. Raises OSError, httptools.HttpParserError."""
        self.has_received = False
        message = _ReceivedMessage()
        parser = httptools.HttpResponseParser(message)
        self._socket.settimeout(_measure_left_s(give_up_at_s))
        self._socket.sendall(request)
        while not message.is_whole:
            self._socket.settimeout(_measure_left_s(give_up_at_s))
            if not (received := self._socket.recv(_RECEIVED_MAX)):
                raise ConnectionResetError("the connection was closed before the response's end")
            self.has_received = True
            parser.feed_data(received)
        # The parser forgets it with the message's end. All that answers here is HTTP/1.1.
        self.may_be_kept = message.headers.get(b"connection", b"").lower() != b"close"
        self.used_at_s = time.monotonic()
        return EndpointResponse(parser.get_status_code(), message.headers, b"".join(message.parts))

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._socket.close()


class _ReceivedMessage:
    """Collects what httptools parses of one response."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.parts: list[bytes] = []
        self.is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self.headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self.parts.append(body)

    def on_message_complete(self) -> None:
        """Note the end of the response."""
        self.is_whole = True


def _measure_left_s(give_up_at_s: float) -> float:
    """Return the seconds that are left. Raises TimeoutError if there are none."""
    if (left_s := give_up_at_s - time.monotonic()) <= 0:
        raise TimeoutError("no response in time")
    return left_s
