"""Provide a minimal Kafka client for `benchmarks.group_load`: one socket, hand-made requests.

The versions are those that librdkafka 2.16 speaks. What a member sends again and again is made
once, and an answer that must always be the same is compared, not read: the client's share of the
machine is small, and the same for both brokers.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from struct import pack
from typing import NamedTuple
from uuid import UUID

from coordinator.shard.record_fields import FieldReader
from coordinator.wire.frames import FrameReader

CLIENT_ID = b"bench"
FRAME_BYTES_MAX = 100 << 20

_CORRELATION_ID = 7  # One for all, since answers come in the order of the requests.


class Call(NamedTuple):
    """Encodes requests, and opens responses, of one version of one API."""

    api_key: int
    version: int
    flexible: bool

    def frame(self, body: bytes) -> bytes:
        """Encode a request with this body, its header and its length."""
        head = pack(">hhih", self.api_key, self.version, _CORRELATION_ID, len(CLIENT_ID))
        rest = CLIENT_ID + (b"\0" if self.flexible else b"") + body
        return pack(">i", len(head) + len(rest)) + head + rest

    def reader(self, answer: bytes) -> FieldReader:
        """Create a reader of a response that stands behind the response's header."""
        reader = FieldReader(answer)
        reader.read_int32()
        if self.flexible:
            reader.is_flexible = True
            reader.read_tagged_fields()
        return reader


OFFSET_COMMIT = Call(8, 9, True)
OFFSET_FETCH = Call(9, 8, True)
JOIN_GROUP = Call(11, 5, False)
HEARTBEAT = Call(12, 3, False)
LEAVE_GROUP = Call(13, 1, False)
SYNC_GROUP = Call(14, 3, False)
CONSUMER_GROUP_HEARTBEAT = Call(68, 1, True)


# Fields: plain as in versions that aren't flexible, compact as in flexible ones (KIP-482).


def string(value: str | None) -> bytes:
    """Encode a text, or null, with its length in 16 bits."""
    if value is None:
        return b"\xff\xff"
    data = value.encode()
    return pack(">h", len(data)) + data


def blob(value: bytes) -> bytes:
    """Encode bytes with their length in 32 bits."""
    return pack(">i", len(value)) + value


def array(elements: Sequence[bytes]) -> bytes:
    """Encode elements with their number in 32 bits."""
    return pack(">i", len(elements)) + b"".join(elements)


def varint(value: int) -> bytes:
    """Encode a number as an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact(value: str | None) -> bytes:
    """Encode a text, or null, as a compact string."""
    if value is None:
        return b"\0"
    data = value.encode()
    return varint(len(data) + 1) + data


def compact_array(elements: Sequence[bytes] | None) -> bytes:
    """Encode elements, or null, as a compact array."""
    return b"\0" if elements is None else varint(len(elements) + 1) + b"".join(elements)


# Requests, in the words of Kafka's schemas.


def offset_commit(
    group: str, epoch: int, member_id: str, topic: str, offsets: Mapping[int, int]
) -> bytes:
    """Encode an OffsetCommit request for the offsets of one topic."""
    partitions = [
        pack(">iqi", partition, offset, -1) + compact("") + b"\0"
        for partition, offset in offsets.items()
    ]
    topics = [compact(topic) + compact_array(partitions) + b"\0"]
    member = compact(group) + pack(">i", epoch) + compact(member_id) + compact(None)
    return OFFSET_COMMIT.frame(member + compact_array(topics) + b"\0")


def check_committed(answer: bytes) -> None:
    """Raise RuntimeError if an OffsetCommit response has an error for any partition."""
    reader = OFFSET_COMMIT.reader(answer)
    reader.read_int32()
    for _ in range(reader.read_array_length()):
        topic = reader.read_string()
        for _ in range(reader.read_array_length()):
            partition, code = reader.read_packed(">ih")
            reader.read_tagged_fields()
            if code:
                raise RuntimeError(f"OffsetCommit of {topic}-{partition}: error {code}")
        reader.read_tagged_fields()


def offset_fetch(groups: Iterable[str]) -> bytes:
    """Encode an OffsetFetch request for all offsets of these groups."""
    requested = [compact(group) + compact_array(None) + b"\0" for group in groups]
    return OFFSET_FETCH.frame(compact_array(requested) + b"\0" + b"\0")


def fetched_offsets(answer: bytes) -> dict[str, tuple[int, dict[int, int]]]:
    """Decode an OffsetFetch response to each group's error code and offsets by partition."""
    reader = OFFSET_FETCH.reader(answer)
    reader.read_int32()
    found: dict[str, tuple[int, dict[int, int]]] = {}
    for _ in range(reader.read_array_length()):
        group, offsets = reader.read_string(), {}
        for _ in range(reader.read_array_length()):
            reader.read_string()
            for _ in range(reader.read_array_length()):
                partition, offset, _epoch = reader.read_packed(">iqi")
                reader.read_nullable_string()
                offsets[partition] = offset
                reader.read_packed(">h")
                reader.read_tagged_fields()
            reader.read_tagged_fields()
        code = reader.read_int16()
        reader.read_tagged_fields()
        found[group] = code, offsets
    return found


def consumer_heartbeat(
    group: str,
    member_id: str,
    epoch: int,
    *,
    topics: Sequence[str] | None = None,
    owned: tuple[UUID, Iterable[int]] | None = None,
) -> bytes:
    """Encode a ConsumerGroupHeartbeat request, where None means unchanged."""
    partitions = None
    if owned is not None:
        topic_id, numbers = owned
        listed = compact_array([pack(">i", number) for number in numbers])
        partitions = [topic_id.bytes + listed + b"\0"] if len(listed) > 1 else []
    joins = topics is not None
    body = (
        compact(group)
        + compact(member_id)
        + pack(">i", epoch)
        + compact(None)  # Instance id.
        + compact(None)  # Rack.
        + pack(">i", 300_000 if joins else -1)
        + compact_array(None if topics is None else [compact(topic) for topic in topics])
        + compact(None)  # Regular expression.
        + compact(None)  # Assignor.
        + compact_array(partitions)
        + b"\0"
    )
    return CONSUMER_GROUP_HEARTBEAT.frame(body)


class ConsumerAnswer(NamedTuple):
    """Holds a ConsumerGroupHeartbeat response; `assigned` is None if nothing is assigned anew."""

    epoch: int
    interval_ms: int
    assigned: frozenset[int] | None


def consumer_answer(answer: bytes) -> ConsumerAnswer:
    """Decode a ConsumerGroupHeartbeat response. Raises RuntimeError for an error code."""
    reader = CONSUMER_GROUP_HEARTBEAT.reader(answer)
    _, code = reader.read_packed(">ih")
    message = reader.read_nullable_string()
    if code:
        raise RuntimeError(f"ConsumerGroupHeartbeat: error {code}, {message}")
    reader.read_nullable_string()
    epoch, interval_ms, has_assignment = reader.read_packed(">iib")
    assigned: list[int] = []
    if has_assignment < 0:
        return ConsumerAnswer(epoch, interval_ms, None)
    for _ in range(reader.read_array_length()):
        reader.read_packed("16s")
        assigned += [reader.read_int32() for _ in range(reader.read_array_length())]
        reader.read_tagged_fields()
    return ConsumerAnswer(epoch, interval_ms, frozenset(assigned))


class Connection(asyncio.Protocol):
    """Sends requests over a socket, and hands each response to the callback of its request."""

    def __init__(self) -> None:
        self._frames = FrameReader(FRAME_BYTES_MAX)
        self._waiting: deque[Callable[[bytes], None]] = deque()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]  # uvloop's is one in all but name

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting:
            _end_process(f"the broker closed a connection: {exc}")

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.read_frames(data):
                self._waiting.popleft()(frame)
        except Exception:
            _end_process(traceback.format_exc())

    def send(self, frame: bytes, then: Callable[[bytes], None]) -> None:
        """Send a request, and call `then` with its response when it comes."""
        self._waiting.append(then)
        self._transport.write(frame)

    def call(self, frame: bytes) -> asyncio.Future[bytes]:
        """Send a request, and return a future of its response."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.send(frame, lambda answer: None if future.done() else future.set_result(answer))
        return future

    def close(self) -> None:
        """Close the connection, dropping responses that are still to come."""
        self._waiting.clear()
        self._transport.close()


def _end_process(reason: str) -> None:
    """Print the reason and end the process.

    An event loop would only log the error, which spoils the measurement.
    """
    sys.stderr.write(reason)
    sys.stderr.flush()
    os._exit(1)


async def connect(servers: str) -> Connection:
    """Open a connection to a broker."""
    host, _, port = servers.rpartition(":")
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, host, int(port))
    return connection
