from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from coordinator.wire.codec import MalformedRequest
from coordinator.wire.connection import QUEUE_BYTES_MAX, ClientConnection, Disconnect
from coordinator.wire.connections import ConnectionRegistry
from coordinator.wire.request_memory import (
    COUNTED_BYTES_MIN,
    STALLED_MS,
    RequestMemory,
    StalledRequestWatch,
)
from coordinator.wire.send_buffer import Answer
from tests.unit.coordinator.fakes import FakeClock

FRAME_BYTES_MAX = 10_000_000


class FakeTransport:
    """Stands in for an asyncio transport as a connection uses it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.pause_at = b""  # its buffer is full with this piece
        self.pause_writing: Callable[[], None]
        self.reading = True
        self.closed = False
        self.unsent_bytes = 0

    def get_extra_info(self, name: str) -> object:
        return ("127.0.0.1", 50_000)

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high

    def write(self, data: bytes) -> None:
        self.written.append(data)
        if data == self.pause_at:
            self.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


class Client:
    """Sends frames of one byte to a connection, whose responses `handler` makes of the byte."""

    def __init__(
        self,
        handler: Callable[[bytes], Answer | Awaitable[Answer]],
        queue_max: int = 100,
        intake: RequestMemory | None = None,
        places: int = 10,
        clock: FakeClock | None = None,
    ) -> None:
        self.open = ConnectionRegistry(places, places)
        self.seen: list[bytes] = []
        self.arrivals_ns: list[int] = []
        self.clock = clock or FakeClock()
        self.transport = FakeTransport()

        def dispatch(frame: bytes, host: str, arrived_ns: int = 0, /) -> Answer | Awaitable[Answer]:
            assert host == "127.0.0.1"
            self.arrivals_ns.append(arrived_ns)
            self.seen.append(frame)
            return handler(frame)

        self.connection = ClientConnection(
            dispatch,
            FRAME_BYTES_MAX,
            queue_max,
            self.open,
            intake or RequestMemory(-1),
            self.clock,
        )
        self.transport.pause_writing = self.connection.pause_writing
        self.connection.connection_made(cast(asyncio.Transport, self.transport))

    def send(self, letters: bytes) -> None:
        self.receive(framed(*(bytes([letter]) for letter in letters)))

    def receive(self, data: bytes) -> None:
        """Pass bytes to the connection as a read of the socket does."""
        self.connection.data_received(data)

    @property
    def answers(self) -> bytes:
        return b"".join(self.transport.written)


async def settle() -> None:
    """Run the loop until nothing is ready any more."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_request_that_others_come_before_has_the_time_of_its_arrival() -> None:
    client = Client(bytes.upper)
    client.send(b"a")
    assert client.arrivals_ns == [0], "it is handled at once"
    client.clock.spend(7)
    client.send(b"bc")
    assert client.arrivals_ns[1:] == [7_000_000, 7_000_000]


def test_connections_that_the_broker_ends_are_counted_by_cause() -> None:
    client = Client(bytes.upper, places=0)
    assert client.open.ended_counts == {"limit": 1, "idle": 0, "stalled": 0, "error": 0}
    client = Client(bytes.upper)
    client.receive(b"\xff" * 8)
    assert client.open.ended_counts == {"limit": 0, "idle": 0, "stalled": 0, "error": 1}
    client.open.close_idle(inactive_since_ms=1)
    assert client.open.ended_counts["idle"] == 1
    assert client.open.created_count == 1


def test_an_answer_that_is_there_is_written_without_a_loop() -> None:
    client = Client(bytes.upper)
    client.send(b"abc")
    assert client.answers == b"ABC"


def test_a_request_that_wants_no_answer_gets_none() -> None:
    client = Client(lambda frame: None if frame == b"b" else frame)
    client.send(b"abc")
    assert client.answers == b"ac"


def test_answers_keep_the_order_of_the_requests_when_one_comes_late() -> None:
    async def scenario() -> None:
        late: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        client = Client(lambda frame: late if frame == b"b" else frame)
        client.send(b"abc")
        client.send(b"d")
        assert (client.answers, client.seen) == (b"a", [b"a", b"b"])
        late.set_result(b"B")
        await settle()
        assert client.answers == b"aBcd"

    asyncio.run(scenario())


def test_no_request_is_taken_up_while_the_client_does_not_read() -> None:
    client = Client(lambda frame: frame)
    client.connection.pause_writing()
    client.send(b"ab")
    assert client.seen == []
    client.connection.resume_writing()
    assert client.answers == b"ab"


class FakeSlice:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def read(self, at: int, count: int) -> bytes:
        if not self.data.isupper():
            raise OSError("the file is closed")
        return self.data[at : at + count]


def test_an_answer_in_pieces_goes_out_as_the_client_reads_it_and_before_the_next() -> None:
    client = Client(lambda frame: [frame, FakeSlice(b"S"), b"t"] if frame == b"a" else frame)
    client.transport.pause_at = b"a"
    client.send(b"abc")
    assert (client.answers, client.seen) == (b"a", [b"a"])
    client.transport.pause_at = b"S"
    client.connection.resume_writing()
    assert (client.answers, client.seen) == (b"aS", [b"a"])
    client.connection.resume_writing()
    assert client.answers == b"aStbc"


def test_a_piece_that_cannot_be_read_closes_the_connection() -> None:
    client = Client(lambda frame: [frame, FakeSlice(b"s"), b"t"])
    client.send(b"ab")
    assert client.transport.closed
    assert (client.answers, client.seen) == (b"a", [b"a"])


def test_nothing_is_read_while_too_many_requests_wait() -> None:
    client = Client(lambda frame: frame, queue_max=3)
    client.connection.pause_writing()
    client.send(b"ab")
    assert client.transport.reading
    client.send(b"c")
    assert not client.transport.reading
    client.connection.resume_writing()
    assert client.transport.reading
    assert client.answers == b"abc"


def test_nothing_is_read_while_requests_of_too_many_bytes_wait() -> None:
    client = Client(lambda frame: frame[:1])
    client.connection.pause_writing()
    for _ in range(2):
        assert client.transport.reading
        client.receive(framed(bytes(QUEUE_BYTES_MAX // 2)))
    assert not client.transport.reading
    client.connection.resume_writing()
    assert client.transport.reading
    assert client.answers == b"\0\0"


def test_while_all_clients_hold_too_much_only_the_first_is_read_from() -> None:
    size = 4 * COUNTED_BYTES_MIN
    intake = RequestMemory(size)
    first, second = (Client(lambda frame: b"!", intake=intake) for _ in range(2))
    data = framed(bytes(size))
    half = len(data) // 2
    first.receive(data[:half])
    second.receive(data[:half])
    third = data[half : half + COUNTED_BYTES_MIN]
    first.receive(third)
    second.receive(third)
    assert (first.transport.reading, second.transport.reading) == (True, False)
    first.receive(data[half + COUNTED_BYTES_MIN :])
    assert first.answers == b"!"
    assert second.transport.reading
    second.receive(data[half + COUNTED_BYTES_MIN :])
    assert second.answers == b"!"
    assert intake.held_bytes == 0


def test_a_client_that_goes_away_in_a_request_makes_room_for_the_others() -> None:
    size = 4 * COUNTED_BYTES_MIN
    intake = RequestMemory(size // 2)
    first, second = (Client(lambda frame: b"!", intake=intake) for _ in range(2))
    for client in (first, second):
        client.receive(framed(bytes(size))[:-1])
    assert not second.transport.reading
    first.connection.connection_lost(None)
    assert second.transport.reading


def test_a_client_that_stalls_in_a_request_is_cut_off_if_others_wait_for_its_memory() -> None:
    size = 4 * COUNTED_BYTES_MIN
    intake = RequestMemory(size)
    clock = FakeClock()
    StalledRequestWatch(intake, clock, clock)
    data = framed(bytes(size))
    first, second, third = (
        Client(lambda frame: b"!", intake=intake, clock=clock) for _ in range(3)
    )
    first.receive(data[:-1])
    clock.advance(10 * STALLED_MS)
    assert not first.transport.closed, "nobody waits"
    assert clock.scheduled() == 0
    second.receive(data[:-1])
    third.receive(data[:-1])
    clock.advance(1_000)
    assert first.transport.closed
    assert first.open.ended_counts == {"limit": 0, "idle": 0, "stalled": 1, "error": 0}
    first.connection.connection_lost(None)
    assert (second.transport.reading, third.transport.reading) == (True, False)
    clock.advance(STALLED_MS)
    assert not second.transport.closed, "it could send nothing before"
    second.receive(data[-1:])
    assert second.answers == b"!"
    assert third.transport.reading
    clock.advance(10 * STALLED_MS)
    assert not third.transport.closed
    assert clock.scheduled() == 0


def test_a_client_that_sends_slowly_is_not_cut_off() -> None:
    size = 4 * COUNTED_BYTES_MIN
    intake = RequestMemory(size // 2)
    clock = FakeClock()
    StalledRequestWatch(intake, clock, clock)
    first, second = (Client(lambda frame: b"!", intake=intake, clock=clock) for _ in range(2))
    data = framed(bytes(size))
    first.receive(data[:-20])
    second.receive(data[:-20])
    for at in range(20, 0, -1):
        clock.advance(STALLED_MS - 1)
        assert not first.transport.closed
        first.receive(data[len(data) - at :][:1])
    assert first.answers == b"!"
    assert second.transport.reading


def test_a_client_whose_reading_was_paused_is_not_cut_off_when_it_may_send_again() -> None:
    async def scenario() -> None:
        size = 4 * COUNTED_BYTES_MIN
        intake = RequestMemory(size // 2)
        clock = FakeClock()
        StalledRequestWatch(intake, clock, clock)
        late: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        first = Client(
            lambda frame: late if frame == b"a" else b"!", queue_max=1, intake=intake, clock=clock
        )
        second = Client(lambda frame: b"!", intake=intake, clock=clock)
        first.receive(framed(b"a", b"b") + framed(bytes(size))[:-1])
        assert not first.transport.reading, "a request waits behind another one"
        second.receive(framed(bytes(size))[:-1])
        clock.advance(2 * STALLED_MS)
        late.set_result(b"A")
        await settle()
        assert first.transport.reading
        clock.advance(STALLED_MS)
        assert not first.transport.closed, "it could send nothing until its answer was there"
        clock.advance(2_000)
        assert first.transport.closed

    asyncio.run(scenario())


def test_a_client_is_cut_off_for_answers_that_it_does_not_read_and_not_while_it_reads_slowly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    size = 4 * COUNTED_BYTES_MIN
    intake = RequestMemory(size // 2)
    clock = FakeClock()
    StalledRequestWatch(intake, clock, clock)
    first, second = (Client(lambda frame: frame[:1], intake=intake, clock=clock) for _ in range(2))
    first.transport.unsent_bytes = 20
    first.connection.pause_writing()
    first.receive(framed(bytes(size // 2)))
    clock.advance(2 * STALLED_MS)
    first.transport.unsent_bytes -= 1
    second.receive(framed(bytes(size))[:-1])
    for _ in range(10):
        clock.advance(STALLED_MS - 1_000)
        first.transport.unsent_bytes -= 1
        assert not first.transport.closed
    clock.advance(STALLED_MS + 2_000)
    assert (first.transport.closed, second.transport.closed) == (True, False)
    assert "it reads no answers" in caplog.text


def test_small_answers_that_are_there_together_go_out_in_one_piece() -> None:
    client = Client(bytes.upper)
    client.send(b"abc")
    assert client.transport.written == [b"ABC"]
    client.send(b"d")
    assert client.transport.written == [b"ABC", b"D"]


def test_a_connection_too_many_is_closed() -> None:
    client = Client(bytes.upper, places=0)
    assert client.transport.closed
    assert len(client.open) == 0


@pytest.mark.parametrize("error", [MalformedRequest("what is this"), Disconnect("enough")])
def test_a_bad_request_closes_its_connection_with_one_line(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def handler(frame: bytes) -> Answer:
        if frame == b"b":
            raise error
        return frame

    client = Client(handler)
    with caplog.at_level(logging.WARNING):
        client.send(b"abc")
    assert client.answers == b"a"
    assert client.transport.closed
    assert [record.getMessage() for record in caplog.records] == [
        f"closing the connection of 127.0.0.1:50000: {error}"
    ]


def test_bytes_that_are_no_frame_close_the_connection() -> None:
    client = Client(lambda frame: frame)
    client.connection.data_received(b"GET / HTTP/1.1\r\n\r\n")
    assert client.transport.closed
    assert client.seen == []


def test_a_client_that_goes_away_takes_its_waiting_request_along() -> None:
    async def scenario() -> None:
        late: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        client = Client(lambda frame: late)
        client.send(b"ab")
        client.transport.closed = True
        client.connection.connection_lost(None)
        await settle()
        assert late.cancelled()
        assert client.seen == [b"a"]
        assert len(client.open) == 0

    asyncio.run(scenario())


def test_a_late_answer_that_fails_closes_the_connection() -> None:
    async def scenario() -> None:
        late: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        client = Client(lambda frame: late)
        client.send(b"a")
        late.set_exception(Disconnect("the coordinator has gone"))
        await settle()
        assert client.transport.closed

    asyncio.run(scenario())
