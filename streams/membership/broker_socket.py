"""Connect a socket to a broker and read from it, until a deadline or until the caller gives up.

A wait ends every 100 ms to look whether it is given up. All errors are OSErrors: TimeoutError once
the deadline is over, ConnectionAbortedError for what is given up.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass

from streams.common.addresses import Address

_WAKE_INTERVAL_S = 0.1
_WAIT_MIN_S = 0.001
"""The seconds that a read waits after the deadline: what has arrived by then is still taken, also
by a process that was stopped in between."""


@dataclass(frozen=True, slots=True)
class WaitLimit:
    """Limits waits together: by a deadline, and by a function that says that they are given up."""

    deadline_s: float
    is_given_up: Callable[[], bool]

    @property
    def remaining_s(self) -> float:
        """Return the seconds until the deadline, at least a millisecond."""
        return max(self.deadline_s - time.monotonic(), _WAIT_MIN_S)

    @property
    def next_wait_s(self) -> float:
        """Return the seconds after which to look again whether a wait is over."""
        return min(self.remaining_s, _WAKE_INTERVAL_S)

    def check_wait(self) -> None:
        """Raise OSError if the wait is given up, or the deadline is over."""
        if self.is_given_up():
            raise ConnectionAbortedError("given up")
        if time.monotonic() >= self.deadline_s:
            raise TimeoutError("no answer in time")


def create_wait_limit(timeout_s: float, is_given_up: Callable[[], bool]) -> WaitLimit:
    """Return a limit whose deadline is `timeout_s` from now."""
    return WaitLimit(time.monotonic() + timeout_s, is_given_up)


def connect_socket(address: Address, limit: WaitLimit) -> socket.socket:
    """Connect to the first of a host's addresses that answers. Raises OSError.

    Each address has an equal part of the time that is left. Returns a socket that doesn't block.
    """
    host_addresses = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    failure: OSError = OSError(f"{address[0]!r} has no address")
    for number, (family, kind, protocol, _, socket_address) in enumerate(host_addresses):
        part_s = limit.remaining_s / (len(host_addresses) - number)
        connecting = socket.socket(family, kind, protocol)
        try:
            connecting.setblocking(False)
            code = connecting.connect_ex(socket_address)
            if code in (errno.EINPROGRESS, errno.EWOULDBLOCK):
                part = create_wait_limit(part_s, limit.is_given_up)
                _wait_until_ready(connecting, selectors.EVENT_WRITE, part)
                code = connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
            return connecting
        except OSError as error:
            connecting.close()
            failure = error
    raise failure


def perform_tls_handshake(
    plain: socket.socket, context: ssl.SSLContext, host: str, limit: WaitLimit
) -> ssl.SSLSocket:
    """Begin TLS on a socket that doesn't block. Raises OSError, and closes the socket then."""
    secured = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
    try:
        while True:
            try:
                secured.do_handshake()
                return secured
            except ssl.SSLWantReadError:
                _wait_until_ready(secured, selectors.EVENT_READ, limit)
            except ssl.SSLWantWriteError:
                _wait_until_ready(secured, selectors.EVENT_WRITE, limit)
    except BaseException:
        secured.close()
        raise


def read_bytes(connected: socket.socket, size: int, limit: WaitLimit) -> bytes:
    """Read `size` bytes from a socket.

    Raises ConnectionResetError if the broker closes the connection, and other OSErrors.
    """
    chunks = bytearray()
    while len(chunks) < size:
        connected.settimeout(limit.next_wait_s)
        try:
            chunk = connected.recv(size - len(chunks))
        except TimeoutError:
            limit.check_wait()
            continue
        if not chunk:
            raise ConnectionResetError("closed by the broker")
        chunks += chunk
    return bytes(chunks)


def _wait_until_ready(waiting: socket.socket, event: int, limit: WaitLimit) -> None:
    """Wait until a socket can be read, or written. Raises OSError."""
    with selectors.DefaultSelector() as selector:
        selector.register(waiting, event)
        while not selector.select(limit.next_wait_s):
            limit.check_wait()
