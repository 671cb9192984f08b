"""Test that a look-up is routed without a task, and left to one where that comes to nothing."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from streams import serdes
from streams.common.addresses import format_address
from streams.errors import StoreUnavailable
from streams.graph.nodes import StoreKind
from streams.queries.endpoint_client import EndpointClient
from streams.queries.http_connection import HttpConnection
from streams.queries.read_threads import THREADS_OF_EACH_SCOPE, ReadThreads
from streams.queries.request_gate import BEGAN_S, OnRoutedResponse, RequestGate
from streams.queries.request_terms import RequestTerms
from streams.queries.routed_reads import RoutedReads
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_reads import StoreRead, StoreRow
from streams.runtime.threads.query_measurements import QueryMeasurements
from tests.processes import HANG_LIMIT_S
from tests.unit.streams.queries.counted_stores import create_routed_reads
from tests.unit.streams.queries.served import TOKEN, FakeReads, declare_store, serve
from tests.unit.streams.queries.test_http_connection import WrittenBytes

LOOK_UP = f"GET /stores/c/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
RESPONSE = b"content-length: 0\r\n\r\n"
_TIMES = re.compile(rb"\r\n(date|millrace-age-ms): [^\r]*")


@pytest.fixture
def owner() -> FakeReads:
    """Return what the worker has that is asked for its rows."""
    spec = declare_store("c", serdes.string, serdes.int64, StoreKind.KEY_VALUE)
    return FakeReads({"c": spec}, {"c": [StoreRow("a", 2, 5)]})


@pytest.fixture
def task_reads(monkeypatch: pytest.MonkeyPatch) -> list[StoreRead]:
    """Return a list of the reads of worker that is asked for which there was a task."""
    found: list[StoreRead] = []
    read_answer = ReadThreads.read_answer

    async def note_read(self: ReadThreads, terms: RequestTerms, *given: Any) -> Any:
        if not terms.is_local:
            found.append(given[0])
        return await read_answer(self, terms, *given)

    monkeypatch.setattr(ReadThreads, "read_answer", note_read)
    return found


@pytest.fixture
def asked(owner: FakeReads) -> Iterator[tuple[socket.socket, QueryMeasurements]]:
    """Connect to a worker that has no task, and knows that `owner` has them."""
    measurements = QueryMeasurements()
    with serve(owner) as address:
        reads = create_routed_reads(format_address(address))
        with (
            serve(reads, measurements=measurements) as asked,
            socket.create_connection(asked, timeout=HANG_LIMIT_S) as connection,
        ):
            yield connection, measurements
            reads.stop_waiting()  # while the loop runs that has the connections
        reads.close()


def look_up(connection: socket.socket) -> bytes:
    connection.sendall(LOOK_UP)
    found = b""
    while not found.endswith(b"}\n"):
        found += connection.recv(65_536)
    return _TIMES.sub(b"", found)


def test_a_routed_look_up_needs_a_task_for_the_first_connection_only(
    asked: tuple[socket.socket, QueryMeasurements], task_reads: list[StoreRead]
) -> None:
    connection, measurements = asked
    by_task = look_up(connection)
    assert by_task.startswith(b"HTTP/1.1 200")
    assert [look_up(connection) for _ in range(3)] == [by_task] * 3
    assert len(task_reads) == 1
    assert sum(measurements.latencies["200"].counts) == 4
    assert measurements.running == 0


def test_what_the_owner_does_not_answer_is_sought_by_a_task(
    asked: tuple[socket.socket, QueryMeasurements], owner: FakeReads, task_reads: list[StoreRead]
) -> None:
    connection, measurements = asked
    by_task = look_up(connection)

    def refuse_once(read: StoreRead) -> None:
        owner.before_read = lambda read: None
        raise StoreUnavailable("tasks are moving")

    owner.before_read = refuse_once
    assert look_up(connection) == by_task
    assert len(task_reads) == 2
    assert len(owner.reads) == 3
    assert sum(measurements.latencies["200"].counts) == 2
    assert measurements.running == 0


class HeldConnection:
    """Holds a connection whose requests for /routed are asked of another worker."""

    def __init__(self, *, is_asked: bool = True) -> None:
        self.began_s: list[float | None] = []
        self.finish: OnRoutedResponse | None = None
        self.transport = WrittenBytes()
        self._is_asked = is_asked
        config = uvicorn.Config(
            self._answer, interface="asgi3", log_config=None, lifespan="off", ws="none"
        )
        self.connection = HttpConnection(
            config, ServerState(), {}, create_prompt_response=lambda target, headers: self._start
        )
        self.connection.connection_made(self.transport)

    def _start(self, on_response: OnRoutedResponse) -> bool:
        assert self.finish is None, "one request is routed at a time"
        self.finish = on_response
        return self._is_asked

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        self.began_s.append(scope.get(BEGAN_S))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    def send_requests(self, count: int) -> None:
        self.connection.data_received(b"GET / HTTP/1.1\r\n\r\n" * count)

    def end_routed(self, response: bytes | None, *, is_last: bool = False) -> None:
        assert self.finish is not None
        self.finish(response, is_last)

    async def list_statuses(self) -> list[bytes]:
        for _ in range(10):
            await asyncio.sleep(0)
        return [each[:3] for each in self.transport.written.split(b"HTTP/1.1 ")[1:]]


def run(use: Callable[[], Any]) -> None:
    asyncio.run(use())


def test_a_request_behind_one_that_is_routed_waits_for_its_turn() -> None:
    async def use() -> None:
        held = HeldConnection()
        held.send_requests(2)
        assert await held.list_statuses() == []
        held.end_routed(RESPONSE)
        assert await held.list_statuses() == [b"200", b"204"]
        assert held.began_s == [None]
        held.connection.connection_lost(None)

    run(use)


def test_a_request_whose_routing_comes_to_nothing_has_a_task_that_knows_when_it_began() -> None:
    async def use() -> None:
        held = HeldConnection()
        held.send_requests(1)
        held.end_routed(None)
        assert await held.list_statuses() == [b"204"]
        assert [each is not None for each in held.began_s] == [True]
        held.connection.connection_lost(None)
        held = HeldConnection(is_asked=False)
        held.send_requests(1)
        assert await held.list_statuses() == [b"204"]
        assert held.began_s == [None]
        held.connection.connection_lost(None)

    run(use)


@pytest.mark.parametrize("is_shut_down", [False, True])
def test_a_worker_that_stops_ends_the_connection_with_a_routed_response(
    is_shut_down: bool,
) -> None:
    async def use() -> None:
        held = HeldConnection()
        held.send_requests(1 if is_shut_down else 2)
        if is_shut_down:
            held.connection.shutdown()
        held.end_routed(RESPONSE, is_last=not is_shut_down)
        assert await held.list_statuses() == [b"200"]
        assert held.transport.written.endswith(b"length: 0\r\nconnection: close\r\n\r\n")
        assert held.transport.is_closing()
        held.connection.connection_lost(None)

    run(use)


@pytest.mark.parametrize("response", [RESPONSE, None])
def test_nothing_is_sent_to_a_client_that_has_gone(response: bytes | None) -> None:
    async def use() -> None:
        held = HeldConnection()
        held.send_requests(1)
        held.connection.connection_lost(None)
        held.end_routed(response)
        assert await held.list_statuses() == []
        assert held.began_s == []

    run(use)


def test_what_was_waited_for_the_owner_counts_as_a_part_of_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads, waits_s, sent = create_routed_reads("127.0.0.1:2"), [], []

    def note_wait(self: RoutedReads, name: str, read: StoreRead, **given: Any) -> StoreAnswer:
        waits_s.append(given["timeout_s"])
        return StoreAnswer([], False, {}, frozenset((0,)), 0.0)

    async def note_request(self: EndpointClient, *given: Any, **options: Any) -> None:
        sent.append(given)
        raise StoreUnavailable("it was asked again")

    monkeypatch.setattr(RoutedReads, "read", note_wait)
    monkeypatch.setattr(EndpointClient, "read_on_loop", note_request)
    terms = RequestTerms("c", False, None, {}, None, 2.0)

    async def read_answer() -> None:
        threads = ReadThreads(reads, QueryMeasurements())
        asked_at_s = asyncio.get_running_loop().time() - 1.5
        read = StoreRead(is_lookup=True, key="a")
        await threads.read_answer(terms, read, lambda answer: b"", asked_at_s)

    asyncio.run(read_answer())
    reads.close()
    assert 0 < waits_s[0] <= 0.5
    assert sent == []


def test_the_latency_of_a_request_that_was_routed_in_vain_is_all_of_it() -> None:
    measurements = QueryMeasurements()

    async def serve_nothing(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 503, "headers": []})

    async def send(message: Any) -> None:
        pass

    async def receive() -> dict[str, Any]:
        return {}

    async def ask() -> None:
        gate = RequestGate(serve_nothing, "", measurements, lambda: False)
        scope: dict[str, Any] = {"type": "http", "query_string": b"", "headers": []}
        scope[BEGAN_S] = asyncio.get_running_loop().time() - 5
        await gate(scope, receive, send)

    asyncio.run(ask())
    assert measurements.latencies["503"].sum_s >= 5


def test_a_read_has_what_its_wait_for_a_thread_has_left_of_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads, waits_s, may_read = create_routed_reads("127.0.0.1:2"), [], threading.Event()

    def note_wait(self: RoutedReads, name: str, read: StoreRead, **given: Any) -> StoreAnswer:
        waits_s.append(given["timeout_s"])
        assert may_read.wait(HANG_LIMIT_S)
        return StoreAnswer([], False, {}, frozenset((0,)), 0.0)

    monkeypatch.setattr(RoutedReads, "read", note_wait)
    terms = RequestTerms("c", False, None, {}, None, HANG_LIMIT_S)

    async def read_rows() -> float:
        threads, read = ReadThreads(reads, QueryMeasurements()), StoreRead(key_from="a")
        asked = [
            asyncio.create_task(threads.read_answer(terms, read, lambda answer: b""))
            for _ in range(THREADS_OF_EACH_SCOPE + 1)
        ]
        while len(waits_s) < THREADS_OF_EACH_SCOPE:
            await asyncio.sleep(0.01)
        began_s = time.monotonic()
        await asyncio.sleep(0.2)
        waited_s = time.monotonic() - began_s
        may_read.set()
        await asyncio.gather(*asked)
        return waited_s

    waited_s = asyncio.run(read_rows())
    reads.close()
    assert len(waits_s) == THREADS_OF_EACH_SCOPE + 1
    assert waits_s[-1] <= HANG_LIMIT_S - waited_s
