"""Simulate members of streams groups (KIP-1071) for `benchmarks.group_load`.

A member does on the wire what Kafka Streams' consumer does: it heartbeats at the broker's interval,
gives up at once what it has to, and reports its tasks when they have changed. The topology has one
sub-topology without state, so that there is a task for each partition of the topic. Each member is
a process of its own. With an endpoint it is told what the endpoints of all members serve each time
that this changes: the bytes of the longest answer, and of all answers, are counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from struct import pack
from typing import NamedTuple
from uuid import uuid4

from benchmarks.group_members import Board
from benchmarks.group_wire import Call, Connection, compact, compact_array
from coordinator.shard.record_fields import FieldReader

STREAMS_GROUP_HEARTBEAT = Call(88, 0, True)
SUBTOPOLOGY = "0"
REBALANCE_TIMEOUT_MS = 300_000
_ABSENT = b"\xff"  # a struct that is null
_PRESENT = b"\x01"


class StreamsAnswer(NamedTuple):
    """Holds a StreamsGroupHeartbeat response; `assigned` is None if the tasks haven't changed."""

    epoch: int
    interval_ms: int
    assigned: frozenset[int] | None
    endpoint_epoch: int


def encode_heartbeat(
    group: str,
    member_id: str,
    epoch: int,
    endpoint_epoch: int,
    *,
    topic: str | None = None,
    owned: Iterable[int] | None = None,
    port: int | None = None,
) -> bytes:
    """Encode a StreamsGroupHeartbeat request, where None means unchanged.

    `topic`: the member joins, with a topology that reads this topic. `port`: of its endpoint.
    """
    joins = topic is not None
    tasks = compact_array(None) * 3
    if owned is not None:
        indexes = compact_array([pack(">i", each) for each in owned])
        active = [compact(SUBTOPOLOGY) + indexes + b"\0"] if len(indexes) > 1 else []
        tasks = compact_array(active) + compact_array([]) * 2
    body = (
        compact(group)
        + compact(member_id)
        + pack(">ii", epoch, endpoint_epoch)
        + compact(None)  # instance id
        + compact(None)  # rack
        + pack(">i", REBALANCE_TIMEOUT_MS if joins else -1)
        + (_ABSENT if topic is None else _PRESENT + _encode_topology(topic))
        + tasks
        + compact(member_id if joins else None)  # process id
        + (_ABSENT if port is None else _PRESENT + compact("localhost") + pack(">H", port) + b"\0")
        + compact_array([] if joins else None)  # client tags
        + compact_array(None) * 2  # task offsets, task end offsets
        + b"\0"  # no shutdown of the application
        + b"\0"
    )
    return STREAMS_GROUP_HEARTBEAT.frame(body)


def _encode_topology(topic: str) -> bytes:
    """Encode a topology of one sub-topology that reads a topic."""
    nothing = compact_array([])
    subtopology = (
        compact(SUBTOPOLOGY)
        + compact_array([compact(topic)])
        + nothing  # source topics by regular expression
        + nothing  # changelogs
        + nothing  # repartition topics that it writes
        + nothing  # repartition topics that it reads
        + nothing  # copartition groups
        + b"\0"
    )
    return pack(">i", 1) + compact_array([subtopology]) + b"\0"


def decode_answer(answer: bytes) -> StreamsAnswer:
    """Decode a StreamsGroupHeartbeat response. Raises RuntimeError for an error code."""
    reader = STREAMS_GROUP_HEARTBEAT.reader(answer)
    _, code = reader.read_packed(">ih")
    message = reader.read_nullable_string()
    if code:
        raise RuntimeError(f"StreamsGroupHeartbeat: error {code}, {message}")
    reader.read_string()
    epoch, interval_ms, _lag, _offset_interval_ms = reader.read_packed(">iiii")
    for _ in range(_read_nullable_length(reader) or 0):
        reader.read_packed(">b")
        reader.read_string()
        reader.read_tagged_fields()
    active, _standby, _warmup = (_read_tasks(reader) for _ in range(3))
    return StreamsAnswer(epoch, interval_ms, active, reader.read_int32())


def _read_nullable_length(reader: FieldReader) -> int | None:
    length = reader.read_uvarint() - 1
    return None if length < 0 else length


def _read_tasks(reader: FieldReader) -> frozenset[int] | None:
    """Read the partitions of tasks of the one sub-topology; None if they haven't changed."""
    length = _read_nullable_length(reader)
    if length is None:
        return None
    found: list[int] = []
    for _ in range(length):
        reader.read_string()
        found += reader.read_int32_array()
        reader.read_tagged_fields()
    return frozenset(found)


class StreamsMember:
    """Sends StreamsGroupHeartbeat; the broker assigns tasks and sets the interval."""

    def __init__(
        self, connection: Connection, group: str, topic: str, board: Board, port: int | None
    ) -> None:
        self.connection = connection
        self.longest_answer_bytes = 0
        self.answer_bytes = 0
        self._group = group
        self._topic = topic
        self._board = board
        self._port = port
        self._member_id = str(uuid4())
        self._known = 0, -1  # member epoch, endpoint epoch
        self._owned: frozenset[int] = frozenset()
        self._last_answer = b""
        self._timer: asyncio.TimerHandle | None = None
        self._rests = False
        self._leaves = False
        self._frame = b""
        self._interval_s = 0.0

    def start(self) -> None:
        self._send_frame(self._encode(0, -1, topic=self._topic, owned=(), port=self._port))

    async def leave(self) -> None:
        self.stop_heartbeats()
        self._leaves = True
        self._board.remove_member(self)
        await self.connection.call(self._encode(-1, 0))
        self.connection.close()

    def stop_heartbeats(self) -> None:
        self._rests = True
        if self._timer is not None:
            self._timer.cancel()

    def heartbeat(self) -> tuple[bytes, bytes]:
        return self._frame, self._last_answer

    @property
    def identity(self) -> tuple[int, str]:
        return self._known[0], self._member_id

    def _encode(
        self,
        epoch: int,
        endpoint_epoch: int,
        *,
        topic: str | None = None,
        owned: Iterable[int] | None = None,
        port: int | None = None,
    ) -> bytes:
        where = self._group, self._member_id, epoch, endpoint_epoch
        return encode_heartbeat(*where, topic=topic, owned=owned, port=port)

    def _send_frame(self, frame: bytes) -> None:
        self.connection.send(frame, self._handle_answer)

    def _handle_answer(self, answer: bytes) -> None:
        if self._leaves:  # the answer to a heartbeat from before, which may bring an assignment
            return
        self.answer_bytes += len(answer)
        self.longest_answer_bytes = max(self.longest_answer_bytes, len(answer))
        if answer == self._last_answer:
            self._heartbeat_later()
            return
        epoch, interval_ms, assigned, endpoint_epoch = decode_answer(answer)
        if (epoch, endpoint_epoch) != self._known:
            self._known = epoch, endpoint_epoch
            self._frame = self._encode(epoch, endpoint_epoch)
        self._interval_s = interval_ms / 1_000
        if assigned is None:
            self._last_answer = answer
            self._board.note_owned(self, epoch, self._owned)
            self._heartbeat_later()
            return
        self._owned = assigned
        self._board.note_owned(self, epoch, assigned)
        self._send_frame(self._encode(epoch, endpoint_epoch, owned=sorted(assigned)))

    def _heartbeat_later(self) -> None:
        if self._rests:
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._interval_s, self._send_frame, self._frame)
