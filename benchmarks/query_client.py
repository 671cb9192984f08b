"""Send queries over kept-open connections, at a rate, for as little processor time as possible."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Sequence

_ANSWER_S = 30.0
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)

Address = tuple[str, int]
Query = tuple[Address, str]
"""A worker, and the path that it is asked for."""


class QueryConnection:
    """Holds one connection to a worker, over which one request after another goes."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, _ANSWER_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, path: str) -> bytes:
        """Return the body of the answer. Raises RuntimeError for any other status than 200."""
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: worker\r\n\r\n".encode())
        received = b""
        while True:
            head, end, body = received.partition(b"\r\n\r\n")
            length = _LENGTH.search(head) if end else None
            if length is not None and len(body) >= int(length[1]):
                break
            if not (more := self._socket.recv(65_536)):
                raise RuntimeError(f"{path}: the connection was closed: {received!r}")
            received += more
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{path}: {received.decode(errors='replace')}")
        return body

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class QueryLoad:
    """Asks what `choose_query` returns, `per_second` times on so many threads, until `finish`."""

    def __init__(
        self, choose_query: Callable[[], Query], per_second: float, thread_count: int
    ) -> None:
        self.latencies_s: list[float] = []
        self._choose_query = choose_query
        self._interval_s = thread_count / per_second
        self._stop = threading.Event()
        self._began_s = time.perf_counter()
        self._errors: list[Exception] = []
        self._threads = [threading.Thread(target=self._run) for _ in range(thread_count)]
        for thread in self._threads:
            thread.start()

    def finish(self) -> float:
        """Stop asking, and return how many queries a second were answered. Raises their errors."""
        span_s = time.perf_counter() - self._began_s
        count = len(self.latencies_s)
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]
        return count / span_s

    def _run(self) -> None:
        connections: dict[Address, QueryConnection] = {}
        due_s = time.perf_counter()
        try:
            while not self._stop.is_set():
                address, path = self._choose_query()
                if address not in connections:
                    connections[address] = QueryConnection(address)
                began_s = time.perf_counter()
                connections[address].ask(path)
                now_s = time.perf_counter()
                self.latencies_s.append(now_s - began_s)
                # What was missed while an answer took long is made up for, up to a second of it.
                due_s = max(due_s + self._interval_s, now_s - 1.0)
                if (left_s := due_s - now_s) > 0:
                    time.sleep(left_s)
        except Exception as error:
            self._errors.append(error)
        finally:
            for connection in connections.values():
                connection.close()


def find_quantile(values: Sequence[float], share: float) -> float:
    """Return the value that a share of all values is not above."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]
