"""Test that hostile or broken clients on real sockets don't keep others from being served."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from kio.index import load_request_schema

from coordinator import EmbeddedBroker
from coordinator.errors import Code
from coordinator.wire.codec import build_entity
from coordinator.wire.connection import ClientConnection
from coordinator.wire.request_memory import COUNTED_BYTES_MIN
from coordinator.wire.send_buffer import CHUNK_BYTES
from tests.own_batches import encode_batch
from tests.processes import HANG_LIMIT_S, UNREACHED_MS, wait_until
from tests.unit.coordinator.api.client import read_answer, request_bytes
from tests.unit.coordinator.log.logs import NOW_MS

PRODUCE, FETCH, METADATA = 0, 1, 3
PARTITIONS = 8
RECORD_BYTES = 900_000
# More than the sockets' own buffers and a frame or two; a third of what is offered.
TAKEN_BYTES_MAX = 60_000_000


class Client:
    """Holds a socket to the broker, for requests and for arbitrary bytes."""

    def __init__(self, bootstrap_servers: str) -> None:
        host, _, port = bootstrap_servers.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=HANG_LIMIT_S)

    def send(self, api_key: int, version: int, **given: Any) -> None:
        self.socket.sendall(framed(api_key, version, **given))

    def receive(self, api_key: int, version: int) -> Any:
        size = self._exactly(4)
        return read_answer(api_key, version, size + self._exactly(int.from_bytes(size, "big")))

    def ask(self, api_key: int, version: int, **given: Any) -> Any:
        self.send(api_key, version, **given)
        return self.receive(api_key, version)

    def is_cut_off(self) -> bool:
        """Return whether the broker has closed the connection, or closes it within the timeout."""
        with contextlib.suppress(ConnectionError):
            return self.socket.recv(1) == b""
        return True

    def offer(self, data: bytes, times: int) -> int:
        """Send until the broker takes no more without a long wait; return the bytes sent."""
        self.socket.settimeout(0.3)
        taken = 0
        with contextlib.suppress(TimeoutError):
            for _ in range(times):
                taken += self._send_all_of(data)
        self.socket.settimeout(HANG_LIMIT_S)
        return taken

    def _send_all_of(self, data: bytes) -> int:
        view = memoryview(data)
        while view:
            view = view[self.socket.send(view) :]
        return len(data)

    def _exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            piece = self.socket.recv(count - len(found))
            assert piece, f"cut off after {len(found)} of {count} bytes"
            found += piece
        return found


def framed(api_key: int, version: int, **given: Any) -> bytes:
    data = request_bytes(build_entity(cast(type, load_request_schema(api_key, version)), given))
    return len(data).to_bytes(4, "big") + data


@pytest.fixture
def running(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path, topics={"t": PARTITIONS}) as embedded:
        yield embedded


@pytest.fixture
def connect(running: EmbeddedBroker) -> Iterator[Callable[[], Client]]:
    """Return a function that connects further clients, which are closed at the end."""
    with contextlib.ExitStack() as exits:

        def connect() -> Client:
            client = Client(running.bootstrap_servers)
            exits.callback(client.socket.close)
            return client

        yield connect


Connect = Callable[[], Client]


def is_served(client: Client) -> bool:
    answer = client.ask(
        METADATA,
        12,
        topics=[{"name": "t", "topic_id": None}],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    return bool(answer.topics[0].error_code == Code.NONE)


def on_loop(broker: EmbeddedBroker, look: Callable[[list[ClientConnection]], int]) -> int:
    """Return the result of `look` over the broker's connections, run on the broker's thread."""
    inside, loop = broker._broker, broker._loop
    assert inside is not None
    assert loop is not None
    server = inside._server
    assert server is not None

    async def answer() -> int:
        return look([cast(ClientConnection, each) for each in server.connections])

    return asyncio.run_coroutine_threadsafe(answer(), loop).result(HANG_LIMIT_S)


def unsent_bytes(broker: EmbeddedBroker) -> int:
    """Return the bytes that the broker holds for clients that don't read."""
    return on_loop(broker, lambda open_: sum(c._transport.get_write_buffer_size() for c in open_))


def fill(client: Client) -> None:
    """Produce a big batch to each partition."""
    batch = encode_batch([(None, b"x" * RECORD_BYTES)], timestamp_ms=NOW_MS)
    for partition in range(PARTITIONS):
        answer = client.ask(PRODUCE, 10, **produce(partition, batch))
        assert answer.responses[0].partition_responses[0].error_code == Code.NONE


def produce(partition: int, batch: bytes) -> dict[str, Any]:
    data = [{"index": partition, "records": batch}]
    return {
        "transactional_id": None,
        "acks": -1,
        "timeout": 1_000,
        "topic_data": [{"name": "t", "partition_data": data}],
    }


def fetch(offset: int = 0, max_wait_ms: int = 0) -> dict[str, Any]:
    """Build a fetch request for all of every partition."""
    return {
        "max_wait": max_wait_ms,
        "min_bytes": 1,
        "max_bytes": 50_000_000,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "forgotten_topics_data": (),
        "rack_id": "",
        "topics": [
            {
                "topic": "t",
                "partitions": [
                    {"partition": i, "fetch_offset": offset, "partition_max_bytes": 1_000_000}
                    for i in range(PARTITIONS)
                ],
            }
        ],
    }


HEAD = b"\0\x03\0\x01\0\0\0\x4d\xff\xff"  # Metadata, version 1, without a client id


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: t\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(500),
        b"\xff\xff\xff\xff",
        b"\x80\0\0\0",
        b"\x7f\xff\xff\xff" + bytes(1_000),
        b"\0\0\0\0",
        b"\0\0\0\x09" + HEAD[:9],
        b"\0\0\0\x0a" + b"\x7f\xff" + HEAD[2:],
        b"\0\0\0\x0e" + HEAD + b"\x7f\xff\xff\xff",
        b"\0\0\x03\xe8" + random.Random(1).randbytes(1_000),
        b"\0\0\x03\xe8" + HEAD + random.Random(2).randbytes(990),
    ],
    ids=[
        "http",
        "tls",
        "length -1",
        "length -2^31",
        "length 2^31-1",
        "empty frame",
        "short header",
        "unknown api",
        "array of 2^31-1",
        "random frame",
        "random body",
    ],
)
def test_bytes_that_are_no_request_cut_off_their_client_and_no_other(
    connect: Connect, data: bytes
) -> None:
    other = connect()
    hostile = connect()
    hostile.socket.sendall(data)
    assert hostile.is_cut_off()
    assert is_served(other)
    assert is_served(connect())


def test_a_client_that_goes_away_within_a_frame_leaves_nothing_behind(
    running: EmbeddedBroker, connect: Connect
) -> None:
    other = connect()
    for size in (2, 50, 1_000_000):
        gone = connect()
        gone.socket.sendall((50_000_000).to_bytes(4, "big")[:size] + bytes(max(0, size - 4)))
        assert is_served(other)
        gone.socket.close()
        wait_until(lambda: on_loop(running, len) == 1, what="one connection is left")


def test_frames_that_are_announced_and_never_come_take_no_memory(
    running: EmbeddedBroker, connect: Connect
) -> None:
    other = connect()
    for _ in range(100):
        connect().socket.sendall((100_000_000).to_bytes(4, "big"))
    assert is_served(other)
    wait_until(lambda: on_loop(running, len) == 101, what="all are connected")
    held = on_loop(running, lambda open_: sum(c._frames.held_bytes for c in open_))
    assert held == 0


def test_a_client_that_does_not_read_is_held_a_piece_of_one_answer_for_and_no_more(
    running: EmbeddedBroker, connect: Connect
) -> None:
    other, slow = connect(), connect()
    fill(other)
    requests = 20
    slow.socket.sendall(framed(FETCH, 12, **fetch()) * requests)
    wait_until(lambda: unsent_bytes(running) > 0, what="an answer waits")
    for _ in range(10):
        assert is_served(other)
        assert unsent_bytes(running) <= 2 * CHUNK_BYTES
    for _ in range(requests):
        answer = slow.receive(FETCH, 12)
        assert [len(p.records) > RECORD_BYTES for p in answer.responses[0].partitions] == (
            [True] * PARTITIONS
        )
    assert is_served(slow)


def test_what_a_client_sends_behind_a_waiting_request_is_not_taken_in(
    connect: Connect,
) -> None:
    other, flooding = connect(), connect()
    flooding.send(FETCH, 12, **fetch(max_wait_ms=UNREACHED_MS))
    batch = encode_batch([(None, b"x" * RECORD_BYTES)], timestamp_ms=NOW_MS)
    # Into partitions that it doesn't wait for, or the wait would be over: there are none.
    frame = framed(PRODUCE, 10, **produce(PARTITIONS, batch))
    taken = flooding.offer(frame, times=200)
    assert taken < TAKEN_BYTES_MAX
    fill(other)  # which ends the wait
    assert len(flooding.receive(FETCH, 12).responses[0].partitions) == PARTITIONS
    for _ in range(taken // len(frame)):
        answer = flooding.receive(PRODUCE, 10).responses[0].partition_responses[0]
        assert answer.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION


def test_a_client_that_does_not_read_does_not_keep_the_broker_from_stopping(
    tmp_path: Path,
) -> None:
    with EmbeddedBroker(tmp_path, topics={"t": PARTITIONS}) as broker:
        slow = Client(broker.bootstrap_servers)
        fill(slow)
        slow.send(FETCH, 12, **fetch())
        wait_until(lambda: unsent_bytes(broker) > 0, what="an answer waits")
    slow.socket.close()


def test_requests_that_are_half_there_are_held_up_to_a_limit_and_all_answered(
    tmp_path: Path,
) -> None:
    """Check that 20 clients with 20 MB each, sent by halves, stay below a limit of 64 MB."""
    limit, size, count = 64_000_000, 20_000_000, 20
    settings = {"queued.max.request.bytes": limit}
    with (
        EmbeddedBroker(tmp_path, topics={"t": 1}, settings=settings) as broker,
        contextlib.ExitStack() as exits,
    ):
        clients = [Client(broker.bootstrap_servers) for _ in range(count)]
        for client in clients:
            exits.callback(client.socket.close)
        frame = framed(PRODUCE, 10, **produce(PARTITIONS, bytes(size)))
        senders = [
            threading.Thread(target=client.socket.sendall, args=(frame,), daemon=True)
            for client in clients
        ]
        for sender in senders:
            sender.start()
        most = 0
        while any(sender.is_alive() for sender in senders):
            most = max(most, on_loop(broker, held_bytes))
        for client in clients:
            [answer] = client.receive(PRODUCE, 10).responses[0].partition_responses
            assert answer.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
        assert most <= limit + size + count * COUNTED_BYTES_MIN
        assert on_loop(broker, held_bytes) == 0


def held_bytes(connections: list[ClientConnection]) -> int:
    return sum(c._frames.held_bytes + c._queue_bytes for c in connections)


def test_a_client_that_says_nothing_for_too_long_is_cut_off_and_one_that_waits_is_not(
    tmp_path: Path,
) -> None:
    settings = {"connections.max.idle.ms": 200}
    with EmbeddedBroker(tmp_path, topics={"t": PARTITIONS}, settings=settings) as broker:
        silent, waiting = Client(broker.bootstrap_servers), Client(broker.bootstrap_servers)
        waiting.send(FETCH, 12, **fetch(max_wait_ms=1_000))
        assert silent.is_cut_off()
        assert len(waiting.receive(FETCH, 12).responses[0].partitions) == PARTITIONS
        for client in (silent, waiting):
            client.socket.close()


def test_a_client_that_takes_nothing_for_too_long_is_forgotten_with_what_it_did_not_take(
    tmp_path: Path,
) -> None:
    settings = {"connections.max.idle.ms": 200}
    with EmbeddedBroker(tmp_path, topics={"t": PARTITIONS}, settings=settings) as broker:
        slow = Client(broker.bootstrap_servers)
        fill(slow)
        slow.send(FETCH, 12, **fetch())
        wait_until(lambda: unsent_bytes(broker) > 0, what="an answer waits")
        wait_until(lambda: on_loop(broker, len) == 0, what="it is forgotten")
        slow.socket.close()


@pytest.mark.parametrize("setting", ["max.connections", "max.connections.per.ip"])
def test_a_connection_too_many_is_cut_off_and_its_place_taken_when_another_has_gone(
    tmp_path: Path, setting: str
) -> None:
    with EmbeddedBroker(tmp_path, topics={"t": 1}, settings={setting: 2}) as broker:
        first, second, third = (Client(broker.bootstrap_servers) for _ in range(3))
        assert third.is_cut_off()
        assert is_served(first)
        assert is_served(second)
        second.socket.close()
        wait_until(lambda: on_loop(broker, len) == 1, what="one has gone")
        fourth = Client(broker.bootstrap_servers)
        assert is_served(fourth)
        for client in (first, third, fourth):
            client.socket.close()
