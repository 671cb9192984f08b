"""Send queries over kept-open connections, at a rate, for as little processor time as possible."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

_ANSWER_S = 30.0
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)

Address = tuple[str, int]
Query = tuple[Address, str]
"""A worker, and the path that it is asked for."""


class HttpAnswer(NamedTuple):
    """Holds a response: its status, its head and its body."""

    status: int
    head: bytes
    body: bytes

    def list_headers(self) -> dict[str, str]:
        """Return the headers by their names in small letters."""
        lines = (line.partition(": ") for line in self.head.decode("latin-1").split("\r\n")[1:])
        return {name.lower(): value for name, _, value in lines}


class QueryConnection:
    """Holds one connection to a worker, over which one request after another goes."""

    def __init__(self, address: Address, token: str = "", timeout_s: float = _ANSWER_S) -> None:
        self._socket = socket.create_connection(address, timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        self._rest = f" HTTP/1.1\r\nHost: worker\r\n{authorization}\r\n"

    def ask(self, path: str) -> bytes:
        """Return the body of the answer. Raises RuntimeError for any other status than 200."""
        answer = self.send_request(path)
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.head!r} {answer.body.decode(errors='replace')}")
        return answer.body

    def send_request(self, path: str) -> HttpAnswer:
        """Return the answer to GET. Raises ConnectionError where the worker ends before it."""
        self._socket.sendall(f"GET {path}{self._rest}".encode())
        received = b""
        while True:
            head, end, body = received.partition(b"\r\n\r\n")
            length = _LENGTH.search(head) if end else None
            if length is not None and len(body) >= int(length[1]):
                return HttpAnswer(int(head[9:12]), head, body)
            if not (more := self._socket.recv(65_536)):
                raise ConnectionError(f"{path}: the connection was closed: {received!r}")
            received += more

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
