"""Ask workers over HTTP/1.1 on blocking connections that are kept open for the next request.

Most of what a look-up costs the worker that passes it on is the speaking of HTTP. So it is parsed
by httptools, in C, as on the other side, and a thread blocks in one call to send a request and
mostly in one to receive the response: each gives up Python's interpreter, and beside a busy stream
thread it takes a while to get that back (docs/decisions/0111).

what a request meets                                     what becomes of it
a kept connection on which something has come meanwhile  sent on another one, and not on this
a kept connection that ends before a byte of a response  sent on another one, if it may be repeated
a connection that ends later, or that is refused         ConnectionError
no whole response in time                                TimeoutError
what is no HTTP, or more than one response               httptools.HttpParserError
a response that is longer than the bounds                httptools.HttpParserError
a certificate that isn't trusted                         ssl.SSLError

After an error the connection is closed, or the next request would get the response of this one.
For the same reason one is not used where bytes have come that no request has asked for.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from threading import BoundedSemaphore, Lock
from typing import NamedTuple

import httptools

from streams.common.addresses import Address

_RECEIVED_MAX = 65_536

HEAD_SIZE_MAX = 65_536
"""The bytes that the line and the headers of a response may have, as those of a request may."""
RESPONSE_SIZE_MAX = 256 << 20
"""The bytes that a whole response may have: the rows of a page are bounded by their number only."""
CONNECTIONS_MAX = 64
"""The requests that are sent at a time, each on a connection, and the connections that are kept."""
IDLE_S = 20.0
"""The seconds for which a connection is kept: fewer than the other side keeps it."""


class EndpointResponse(NamedTuple):
    """Holds a whole response; the names of its headers are in small letters."""

    status: int
    headers: Mapping[bytes, bytes]
    content: bytes

    def may_keep_connection(self) -> bool:
        """Return whether another request may be sent on the connection.

        httptools forgets it with the message's end. All that answers here is HTTP/1.1. Behind an
        interim response comes another one.
        """
        is_ending = self.headers.get(b"connection", b"").lower() == b"close"
        return not is_ending and self.status >= HTTPStatus.OK


class EndpointConnections:
    """Sends requests to any worker on kept connections; it may be used by several threads.

    With a `context` they are of TLS, and the other side's certificate has to be for its host.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._lock = Lock()
        self._kept: list[_Connection] = []
        """This holds connections to all workers, the one that was used last at the end."""
        self._places = BoundedSemaphore(CONNECTIONS_MAX)
        self._is_closed = False

    def send_request(
        self, address: Address, request: bytes, timeout_s: float, *, may_repeat: bool = True
    ) -> EndpointResponse:
        """Return the response to a request, which has no body.

        Without `may_repeat` the other side gets it once at most. Raises OSError or
        httptools.HttpParserError if there is no response within `timeout_s`.
        """
        give_up_at_s = time.monotonic() + timeout_s
        if not self._places.acquire(timeout=timeout_s):
            raise TimeoutError(f"{CONNECTIONS_MAX} other requests have no response yet")
        try:
            return self._send_on_any(address, request, give_up_at_s, may_repeat)
        finally:
            self._places.release()

    def _send_on_any(
        self, address: Address, request: bytes, give_up_at_s: float, may_repeat: bool
    ) -> EndpointResponse:
        """Send a request on a kept connection, or on a new one where none is of use any more."""
        while True:
            kept = self._find_kept(address)
            connection = kept or _Connection(address, self._context, give_up_at_s)
            try:
                response = connection.exchange_message(request, give_up_at_s)
            except BaseException as error:
                connection.close()
                has_ended = isinstance(error, OSError) and not isinstance(error, TimeoutError)
                is_answered = connection.has_received or (connection.has_sent and not may_repeat)
                if kept is None or is_answered or not has_ended:
                    raise
                continue
            self._keep_connection(connection)
            return response

    def _find_kept(self, address: Address) -> _Connection | None:
        """Return the connection to a worker that was used last, and on which nothing has come."""
        while (kept := self._take_kept(address)) is not None:
            if not kept.is_readable():
                break
            kept.close()
        return kept

    def _take_kept(self, address: Address) -> _Connection | None:
        """Return the connection to a worker that was used last, and keep it no more."""
        with self._lock:
            self._close_idle()
            for index in reversed(range(len(self._kept))):
                if self._kept[index].address == address:
                    return self._kept.pop(index)
        return None

    def _keep_connection(self, connection: _Connection) -> None:
        """Keep a connection for the next request, if both sides do."""
        with self._lock:
            self._close_idle()
            if connection.may_be_kept and not self._is_closed:
                connection.used_at_s = time.monotonic()
                self._kept.append(connection)
                if len(self._kept) > CONNECTIONS_MAX:
                    self._kept.pop(0).close()
                return
        connection.close()

    def _close_idle(self) -> None:
        """Close what has been idle for too long, to workers that nobody asks any more too."""
        oldest_s = time.monotonic() - IDLE_S
        while self._kept and self._kept[0].used_at_s < oldest_s:
            self._kept.pop(0).close()

    def close(self) -> None:
        """Close the connections that are kept, and others when their responses have come."""
        with self._lock:
            self._is_closed = True
            for connection in self._kept:
                connection.close()
            self._kept.clear()


class _Connection:
    """Represents one connection to a worker. Raises OSError if there is none in time."""

    def __init__(
        self, address: Address, context: ssl.SSLContext | None, give_up_at_s: float
    ) -> None:
        self.address = address
        self.used_at_s = 0.0
        self.has_sent = self.has_received = self.may_be_kept = False
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
        self._poll = select.poll()
        self._poll.register(opened, select.POLLIN)

    def is_readable(self) -> bool:
        """Return True if the other side has ended the connection, or sent what nobody has asked."""
        return bool(self._poll.poll(0))

    def exchange_message(self, request: bytes, give_up_at_s: float) -> EndpointResponse:
        """Send a request, and return its response. Raises OSError, httptools.HttpParserError."""
        self.has_sent = self.has_received = False
        message = ReceivedMessage()
        parser = httptools.HttpResponseParser(message)
        self._socket.settimeout(_measure_left_s(give_up_at_s))
        self._socket.sendall(request)
        self.has_sent = True
        while not message.is_whole:
            self._socket.settimeout(_measure_left_s(give_up_at_s))
            if not (received := self._socket.recv(_RECEIVED_MAX)):
                raise ConnectionResetError("the connection was closed before the response's end")
            self.has_received = True
            parser.feed_data(received)
            message.check_bounds(len(received))
        response = message.create_response(parser.get_status_code())
        self.may_be_kept = response.may_keep_connection()
        return response

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._socket.close()


class ReceivedMessage:
    """Collects what httptools parses of one response, within bounds."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.parts: list[bytes] = []
        self.is_whole = False
        self._has_head = False
        self._count = self._head_size = self._size = 0

    def on_message_begin(self) -> None:
        """Count what begins: what is behind the response's end counts as another one."""
        self._count += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, also one behind the body."""
        self._head_size += len(name) + len(value)
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Note the end of the head."""
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self.parts.append(body)

    def on_message_complete(self) -> None:
        """Note the end of the response."""
        self.is_whole = True

    def create_response(self, status: int) -> EndpointResponse:
        """Return the response, which is whole, with the status that the parser has found."""
        return EndpointResponse(status, self.headers, b"".join(self.parts))

    def check_bounds(self, received_size: int) -> None:
        """Count bytes that were parsed. Raises httptools.HttpParserError.

        What the methods above raise would come out of the parser without its message.
        """
        self._size += received_size
        head_size = self._head_size if self._has_head else self._size
        if head_size > HEAD_SIZE_MAX:
            problem = f"the headers of its response have more than {HEAD_SIZE_MAX} bytes"
        elif self._size > RESPONSE_SIZE_MAX:
            problem = f"its response has more than {RESPONSE_SIZE_MAX} bytes: read fewer rows"
        elif self._count > 1:
            problem = "it has sent more than one response"
        else:
            return
        raise httptools.HttpParserError(problem)


def _measure_left_s(give_up_at_s: float) -> float:
    """Return the seconds that are left. Raises TimeoutError if there are none."""
    if (left_s := give_up_at_s - time.monotonic()) <= 0:
        raise TimeoutError("no response in time")
    return left_s
