"""Test that clients which are slow, greedy or gone take nothing from others, and leave no trace."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from streams.queries import http_server
from streams.queries.http_connection import HEAD_SIZE_MAX, HttpConnection
from streams.runtime.threads.query_measurements import QueryMeasurements
from tests.processes import HANG_LIMIT_S, wait_until
from tests.unit.streams.queries.served import (
    TOKEN,
    create_large_reads,
    create_prompt_reads,
    create_reads,
    serve,
)

REQUEST = f"GET /stores/counts/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
PAGES = 100
"""The pages of a range that no two buffers of sockets hold: 43 MB."""
RANGE = REQUEST.replace("/counts/a", "/large")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the times after which a client is disconnected."""
    monkeypatch.setattr(HttpConnection, "arrival_s", 0.3)
    monkeypatch.setattr(HttpConnection, "stall_s", 0.3)


@pytest.fixture(autouse=True, params=["by tasks", "at once"])
def answered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let look-ups be answered by tasks, or where the head of a request has been parsed."""
    if request.param == "at once":
        monkeypatch.setattr(sys.modules[__name__], "create_reads", create_prompt_reads)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """See that no client makes the log longer."""
    yield
    assert [each.getMessage() for each in caplog.records if each.levelname != "DEBUG"] == []


def connect(address: tuple[str, int]) -> socket.socket:
    connection = socket.create_connection(address, timeout=HANG_LIMIT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read_answer(connection: socket.socket) -> bytes:
    """Return one response with a key's row, which comes in one or two parts."""
    found = b""
    while not found.endswith(b"}\n") and (data := connection.recv(65_536)):
        found += data
    return found


def assert_set(event: threading.Event) -> None:
    assert event.wait(HANG_LIMIT_S)


def send_slowly(connection: socket.socket, text: str) -> None:
    for byte in text.encode():
        connection.sendall(bytes((byte,)))
        time.sleep(0.01)


def read_to_end(connection: socket.socket) -> bytes:
    found = []
    with suppress(ConnectionError):
        while data := connection.recv(65_536):
            found.append(data)
    return b"".join(found)


@pytest.mark.parametrize("sent", ["", "GET /sto", REQUEST])
@pytest.mark.usefixtures("impatient")
def test_a_request_that_never_arrives_is_not_waited_for(sent: str) -> None:
    with serve(create_reads()) as address, connect(address) as connection:
        connection.sendall(sent.encode())
        assert read_to_end(connection) == b""


@pytest.mark.usefixtures("impatient")
def test_a_request_that_arrives_byte_by_byte_is_not_waited_for() -> None:
    with (
        serve(create_reads()) as address,
        connect(address) as connection,
        pytest.raises(ConnectionError),
    ):
        send_slowly(connection, REQUEST + "X-Slow: " + "x" * 10_000)


@pytest.mark.parametrize("sent", ["\r\n", "GET /sto"])
@pytest.mark.usefixtures("impatient")
def test_a_connection_ends_that_has_had_its_answer_and_sends_no_whole_request(sent: str) -> None:
    """A byte ends the time of keep-alive, and a blank line begins no request."""
    with serve(create_reads()) as address, connect(address) as connection:
        connection.sendall(f"{REQUEST}\r\n".encode())
        assert read_answer(connection).startswith(b"HTTP/1.1 200")
        connection.settimeout(HANG_LIMIT_S / 10)
        connection.sendall(sent.encode())
        assert read_to_end(connection) == b""


@pytest.mark.usefixtures("impatient")
def test_a_connection_ends_whose_body_arrives_behind_the_answer() -> None:
    with serve(create_reads()) as address, connect(address) as connection:
        connection.sendall(f"{REQUEST}Content-Length: 3\r\n\r\n".encode())
        assert read_answer(connection).startswith(b"HTTP/1.1 200")
        connection.settimeout(HANG_LIMIT_S / 10)
        connection.sendall(b"xyz")
        assert read_to_end(connection) == b""


@pytest.mark.parametrize("rest", ["GET /sto", "GET /stores/counts/nobody HTTP/1.1\r\nX-Part: "])
def test_an_answer_comes_although_only_a_part_of_the_next_request_does(
    rest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HttpConnection, "arrival_s", 0.3)
    reads = create_reads()
    may_answer = threading.Event()
    reads.before_read = lambda read: assert_set(may_answer)
    with serve(reads) as address, connect(address) as connection:
        connection.sendall(f"{REQUEST}\r\n{rest}".encode())
        time.sleep(0.1)
        connection.sendall(b"xyz")
        time.sleep(0.6)
        may_answer.set()
        assert read_answer(connection).startswith(b"HTTP/1.1 200")


def test_a_body_that_nobody_has_asked_for_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HttpConnection, "arrival_s", 2.0)  # the answer comes before that
    with serve(create_reads()) as address, connect(address) as connection:
        connection.sendall(f"{REQUEST}Content-Length: 1000\r\n\r\n".encode())
        assert read_answer(connection).startswith(b"HTTP/1.1 200")
        with pytest.raises(ConnectionError):
            send_slowly(connection, "x" * 999)


def test_headers_without_end_are_refused() -> None:
    with serve(create_reads()) as address, connect(address) as connection:
        try:
            for number in range(10_000):
                connection.sendall(
                    f"{REQUEST if not number else ''}X-{number}: {number}\r\n".encode()
                )
        except ConnectionError:
            pass
        assert read_to_end(connection)[:12] in (b"HTTP/1.1 400", b"")


class WrittenBytes(asyncio.Transport):
    """Keeps what a connection writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self._is_closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    abort = close

    def resume_reading(self) -> None:
        pass

    pause_reading = resume_reading


async def answer_nothing(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def answer_piece(piece: bytes) -> bytes:
    """Return what a connection writes that gets all of these bytes at once."""
    config = uvicorn.Config(answer_nothing, log_config=None, lifespan="off", ws="none")
    connection, transport = HttpConnection(config, ServerState(), {}), WrittenBytes()
    connection.connection_made(transport)
    connection.data_received(piece)
    for _ in range(10):
        await asyncio.sleep(0)
    connection.connection_lost(None)
    return transport.written


def test_keep_alive_ends_no_request_that_comes_with_one_answered_at_once() -> None:
    """The time of keep-alive begins behind the response to the first, and the second is there."""
    head = "GET /{} HTTP/1.1\r\n\r\n"

    def answer_first(target: bytes, headers: object) -> bytes | None:
        return b"content-length: 0\r\n\r\n" if target == b"/first" else None

    async def answer_both() -> tuple[bool, bytes]:
        may_answer = asyncio.Event()

        async def answer_second(scope: Any, receive: Any, send: Any) -> None:
            await may_answer.wait()
            await answer_nothing(scope, receive, send)

        config = uvicorn.Config(
            answer_second, log_config=None, lifespan="off", ws="none", timeout_keep_alive=0
        )
        transport = WrittenBytes()
        connection = HttpConnection(config, ServerState(), {}, create_prompt_response=answer_first)
        connection.connection_made(transport)
        connection.data_received((head.format("first") + head.format("second")).encode())
        await asyncio.sleep(0.01)
        is_open = not transport.is_closing()
        may_answer.set()
        await asyncio.sleep(0.01)
        connection.connection_lost(None)
        return is_open, transport.written

    is_open, written = asyncio.run(answer_both())
    assert is_open
    assert [each[:3] for each in written.split(b"HTTP/1.1 ")[1:]] == [b"200", b"204"]


@pytest.mark.parametrize(("beyond", "status"), [(0, b"204"), (1, b"400")])
@pytest.mark.parametrize("head", ["/ HTTP/1.1\r\nX: {}", "/ HTTP/1.1\r\nX{}: x", "/{} HTTP/1.1"])
def test_a_head_that_comes_in_one_piece_may_have_64_kib(
    head: str, beyond: int, status: bytes
) -> None:
    whole = f"GET {head}\r\n\r\n"
    text = "x" * (HEAD_SIZE_MAX - len(whole.format("")) + beyond)
    assert asyncio.run(answer_piece(whole.format(text).encode()))[9:12] == status


def test_a_body_is_no_part_of_a_head() -> None:
    with serve(create_reads()) as address, connect(address) as connection:
        connection.sendall(f"{REQUEST}Content-Length: 1000000\r\n\r\n".encode())
        assert read_answer(connection).startswith(b"HTTP/1.1 200")
        connection.sendall(b"x" * 1_000_000)  # more than the server takes at once
        connection.sendall(f"{REQUEST}\r\n".encode())
        assert read_answer(connection).startswith(b"HTTP/1.1 200")


def test_a_body_has_no_trailers_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpConnection, "arrival_s", HANG_LIMIT_S)
    with serve(create_reads()) as address, connect(address) as connection:
        connection.sendall(f"{REQUEST}Transfer-Encoding: chunked\r\n\r\n0\r\n".encode())
        assert read_answer(connection).startswith(b"HTTP/1.1 200")
        connection.settimeout(HANG_LIMIT_S / 10)
        with suppress(ConnectionError):
            for number in range(10_000):
                connection.sendall(f"X-{number}: {number}\r\n".encode())
        assert read_to_end(connection)[:12] in (b"HTTP/1.1 400", b"")


def test_what_is_no_http_is_refused() -> None:
    with serve(create_reads()) as address, connect(address) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00 hello\r\n\r\n")
        assert read_to_end(connection).startswith(b"HTTP/1.1 400")


def test_connections_beyond_the_limit_are_closed_and_those_before_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HttpConnection, "connections_max", 5)
    measurements = QueryMeasurements()
    with serve(create_reads(), measurements=measurements) as address, ExitStack() as exits:
        first = [exits.enter_context(connect(address)) for _ in range(5)]
        for each in first:
            each.sendall(f"{REQUEST}\r\n".encode())
            assert read_answer(each).startswith(b"HTTP/1.1 200")
        for _ in range(3):
            with connect(address) as beyond:
                assert read_to_end(beyond) == b""
        assert measurements.refused == {"connections": 3}
        first.pop().close()

        def is_room() -> bool:
            with connect(address) as again:
                try:
                    again.sendall(f"{REQUEST}\r\n".encode())
                    return read_answer(again).startswith(b"HTTP/1.1 200")
                except ConnectionError:
                    return False

        wait_until(is_room, what="room for one more")
        first[0].sendall(f"{REQUEST}\r\n".encode())
        assert read_answer(first[0]).startswith(b"HTTP/1.1 200")


def test_requests_that_come_at_once_are_answered_in_order() -> None:
    with serve(create_reads()) as address, connect(address) as connection:
        second = REQUEST.replace("/counts/a", "/counts/nobody")
        last = f"{REQUEST}Connection: close\r\n\r\n"
        connection.sendall(f"{REQUEST}\r\n{second}\r\n{last}".encode())
        answers = read_to_end(connection)
    statuses = [each[:3] for each in answers.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"404", b"200"]


def test_a_range_is_read_no_faster_than_its_client_takes_it() -> None:
    reads = create_large_reads(PAGES * 1_000, value_size=400)
    with serve(reads) as address, connect(address) as connection:
        connection.sendall(f"{RANGE}Connection: close\r\n\r\n".encode())
        taken = connection.recv(1_000)
        pages = -1
        while pages < len(reads.reads):
            pages = len(reads.reads)
            time.sleep(0.3)
        assert pages < PAGES  # what lies in the buffers of the two sockets
        taken += read_to_end(connection)
        assert len(reads.reads) == PAGES
    assert taken.endswith(b"0\r\n\r\n")
    assert taken.count(b'"key"') == PAGES * 1_000


@pytest.mark.usefixtures("impatient")
def test_a_client_that_takes_nothing_is_disconnected() -> None:
    reads = create_large_reads(PAGES * 1_000, value_size=400)
    with serve(reads) as address, connect(address) as connection:
        connection.sendall(f"{RANGE}\r\n".encode())
        pages = -1
        while pages < len(reads.reads):
            pages = len(reads.reads)
            time.sleep(0.6)
        assert not read_to_end(connection).endswith(b"0\r\n\r\n")
        assert len(reads.reads) < PAGES


def test_a_client_that_goes_ends_the_reading_of_its_range() -> None:
    reads = create_large_reads(PAGES * 1_000, value_size=400)
    with serve(reads) as address:
        with connect(address) as connection:
            connection.sendall(f"{RANGE}\r\n".encode())
            connection.recv(1_000)
        pages = -1
        while pages < len(reads.reads):
            pages = len(reads.reads)
            time.sleep(0.3)
        assert pages < PAGES


def test_a_server_that_is_closed_ends_ranges_and_waits_for_no_client() -> None:
    reads = create_large_reads(PAGES * 1_000, value_size=400)
    with ExitStack() as exits:
        with serve(reads) as address:
            connection = exits.enter_context(connect(address))
            connection.sendall(f"{RANGE}\r\n".encode())
            assert connection.recv(1_000).startswith(b"HTTP/1.1 200")
            began_s = time.monotonic()
        assert time.monotonic() - began_s < HANG_LIMIT_S / 2
        assert not read_to_end(connection).endswith(b"0\r\n\r\n")
        with pytest.raises(ConnectionError):
            connect(address)
    assert not [each for each in threading.enumerate() if each.name == "queries"]


def test_a_server_that_is_closed_waits_for_no_position() -> None:
    with ExitStack() as exits:
        with serve(create_reads()) as address:
            connection = exits.enter_context(connect(address))
            path = "/counts/a?scope=local&wait-ms=60000&at-least=in-0:8"
            connection.sendall(f"{REQUEST.replace('/counts/a', path)}\r\n".encode())
            time.sleep(0.1)
            began_s = time.monotonic()
        assert time.monotonic() - began_s < 30
        assert read_to_end(connection)[:12] in (b"HTTP/1.1 503", b"")


def test_a_server_that_stops_answers_what_arrives_and_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "LINGER_S", HANG_LIMIT_S)
    reads = create_reads()
    served = serve(reads)
    with connect(served.__enter__()) as connection:
        connection.sendall(f"{REQUEST}\r\n".encode())
        assert b"connection: close" not in read_answer(connection)
        stopping = threading.Thread(target=served.__exit__, args=(None, None, None))
        stopping.start()
        wait_until(lambda: reads.is_stopping, what="the server is stopping")
        connection.sendall(f"{REQUEST}\r\n".encode())
        answer = read_to_end(connection)
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in answer
        stopping.join(HANG_LIMIT_S / 2)  # nobody else is connected, so that nothing is waited for
        assert not stopping.is_alive()


def test_a_server_that_stops_waits_no_longer_for_clients_that_ask_nothing() -> None:
    with ExitStack() as exits:
        with serve(create_reads()) as address:
            connection = exits.enter_context(connect(address))
            connection.sendall(f"{REQUEST}\r\n".encode())
            assert read_answer(connection).startswith(b"HTTP/1.1 200")
            began_s = time.monotonic()
        assert time.monotonic() - began_s < HANG_LIMIT_S / 2
        assert read_to_end(connection) == b""
