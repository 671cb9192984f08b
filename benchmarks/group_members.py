"""Simulate group members of either protocol, and notice when their group is stable.

A member does on the wire what a real one does: it heartbeats at its interval, joins again when it
is told to, gives up at once what it has to, and says so at once. It has no records to handle, so
that only the broker, the protocol and its intervals are measured.
Stable: every member is in the same generation (or epoch), all partitions have exactly one owner,
and no member has two more than another. Nothing moves after that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from struct import pack
from typing import Protocol
from uuid import UUID, uuid4

from benchmarks import group_wire as wire
from benchmarks.group_wire import Connection
from coordinator.shard.record_fields import FieldReader

SESSION_TIMEOUT_MS = 45_000
REBALANCE_TIMEOUT_MS = 300_000
MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID = 79, 27, 25
PROTOCOL = "range"


class Unstable(RuntimeError):
    """Signals that a group did not become stable in time, or broke a rule of the protocol."""


class Board:
    """Keeps which partitions each member owns, and since when the group is stable."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._have: dict[Member, tuple[int, frozenset[int]]] = {}
        self._expected = 0
        self._stable = asyncio.Event()
        self._stable_at = 0.0

    def expect(self, members: int) -> None:
        """Set the expected number of members; the group is stable again after a change only."""
        self._expected = members
        self._stable.clear()

    def note_owned(self, member: Member, epoch: int, owned: frozenset[int]) -> None:
        """Note a member's generation or epoch, and the partitions that it owns."""
        self._have[member] = epoch, owned
        self._check_stability()

    def remove_member(self, member: Member) -> None:
        """Remove a member that leaves the group."""
        self._have.pop(member, None)

    async def wait_until_stable(self, timeout_s: float) -> float:
        """Wait until the group is stable; return since when. Raises Unstable after the time-out."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._stable.wait()
        except TimeoutError:
            raise Unstable(f"after {timeout_s} s: {self.describe_progress()}") from None
        if not self._is_stable():
            raise Unstable(f"it did not stay so: {self.describe_progress()}")
        return self._stable_at

    def describe_progress(self) -> str:
        """Describe how many members own how many partitions so far."""
        epochs = sorted({epoch for epoch, _ in self._have.values()})
        owned = sum(len(owned) for _, owned in self._have.values())
        return (
            f"{len(self._have)} of {self._expected} members in {epochs} have {owned} of "
            f"{self._partitions} partitions"
        )

    def _check_stability(self) -> None:
        if len(self._have) == self._expected and not self._stable.is_set() and self._is_stable():
            self._stable_at = time.perf_counter()
            self._stable.set()

    def _is_stable(self) -> bool:
        epochs = {epoch for epoch, _ in self._have.values()}
        sizes = [len(owned) for _, owned in self._have.values()]
        if len(epochs) != 1 or sum(sizes) != self._partitions or max(sizes) - min(sizes) > 1:
            return False
        return len(frozenset().union(*(owned for _, owned in self._have.values()))) == sum(sizes)


class Member(Protocol):
    """Represents a group member that has a connection of its own."""

    connection: Connection

    def start(self) -> None: ...
    async def leave(self) -> None: ...
    def stop_heartbeats(self) -> None:
        """Stop the heartbeats that the member sends of its own accord."""
        ...

    def heartbeat(self) -> tuple[bytes, bytes]:
        """Return the bytes of a heartbeat request, and of the answer while nothing changes."""
        ...

    @property
    def identity(self) -> tuple[int, str]:
        """Return the generation or epoch and the member id, which commits need."""
        ...


class ClassicMember:
    """Sends JoinGroup, SyncGroup and Heartbeat; as leader it assigns ranges prepared in advance."""

    def __init__(
        self,
        connection: Connection,
        group: str,
        topic: str,
        interval_ms: int,
        board: Board,
        ranges: dict[int, list[bytes]],
    ) -> None:
        self.connection = connection
        self._group = wire.string(group)
        self._interval_s = interval_ms / 1_000
        self._board = board
        self._ranges = ranges  # By number of members.
        self._member_id = ""
        self._generation = -1
        self._timer: asyncio.TimerHandle | None = None
        self._rests = False
        self._frame = b""
        metadata = pack(">h", 0) + wire.array([wire.string(topic)]) + wire.blob(b"")
        self._protocols = wire.array([wire.string(PROTOCOL) + wire.blob(metadata)])

    def start(self) -> None:
        self._send_join()

    async def leave(self) -> None:
        self.stop_heartbeats()
        self._board.remove_member(self)
        body = self._group + wire.string(self._member_id)
        await self.connection.call(wire.LEAVE_GROUP.frame(body))
        self.connection.close()

    def stop_heartbeats(self) -> None:
        self._rests = True
        if self._timer is not None:
            self._timer.cancel()

    def heartbeat(self) -> tuple[bytes, bytes]:
        body = self._group + pack(">i", self._generation) + wire.string(self._member_id)
        frame = wire.HEARTBEAT.frame(body + wire.string(None))
        return frame, frame[8:12] + pack(">ih", 0, 0)

    @property
    def identity(self) -> tuple[int, str]:
        return self._generation, self._member_id

    def _send_join(self) -> None:
        body = (
            self._group
            + pack(">ii", SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS)
            + wire.string(self._member_id)
            + wire.string(None)
            + wire.string("consumer")
            + self._protocols
        )
        self.connection.send(wire.JOIN_GROUP.frame(body), self._handle_join)

    def _handle_join(self, answer: bytes) -> None:
        reader = wire.JOIN_GROUP.reader(answer)
        _, code, generation = reader.read_packed(">ihi")
        _, leader, member_id = reader.read_string(), reader.read_string(), reader.read_string()
        if code in (0, MEMBER_ID_REQUIRED):
            self._member_id = member_id
        elif code == UNKNOWN_MEMBER_ID:
            self._member_id = ""
        else:
            raise Unstable(f"JoinGroup: error {code}")
        if code:
            self._send_join()
            return
        self._generation = generation
        assignments: list[bytes] = []
        if leader == member_id:
            members = []
            for _ in range(reader.read_array_length()):
                members.append(reader.read_string())
                reader.read_nullable_string()
                reader.read_byte_field()
            ranges = self._ranges[len(members)]
            assignments = [
                wire.string(id_) + part for id_, part in zip(members, ranges, strict=True)
            ]
        body = self._group + pack(">i", generation) + wire.string(member_id) + wire.string(None)
        self.connection.send(
            wire.SYNC_GROUP.frame(body + wire.array(assignments)), self._handle_sync
        )

    def _handle_sync(self, answer: bytes) -> None:
        reader = wire.SYNC_GROUP.reader(answer)
        _, code = reader.read_packed(">ih")
        if code:
            self._rejoin_after_error(code)
            return
        assigned = FieldReader(reader.read_byte_field())
        assigned.read_int16()
        owned: list[int] = []
        for _ in range(assigned.read_array_length()):
            assigned.read_string()
            owned += [assigned.read_int32() for _ in range(assigned.read_array_length())]
        self._board.note_owned(self, self._generation, frozenset(owned))
        self._frame = self.heartbeat()[0]
        self._heartbeat_later()

    def _heartbeat_later(self) -> None:
        if self._rests:
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(
            self._interval_s, self.connection.send, self._frame, self._handle_heartbeat
        )

    def _handle_heartbeat(self, answer: bytes) -> None:
        _, code = wire.HEARTBEAT.reader(answer).read_packed(">ih")
        if code:
            self._rejoin_after_error(code)
        else:
            self._heartbeat_later()

    def _rejoin_after_error(self, code: int) -> None:
        if code == UNKNOWN_MEMBER_ID:
            self._member_id = ""
        elif code != REBALANCE_IN_PROGRESS:
            raise Unstable(f"SyncGroup or Heartbeat: error {code}")
        self._send_join()


def ranges(topic: str, partitions: int, members: int) -> list[bytes]:
    """Encode the assignment of each of `members` members, which get ranges of equal size."""
    assignments = []
    for number in range(members):
        owned = range(partitions * number // members, partitions * (number + 1) // members)
        listed = wire.string(topic) + wire.array([pack(">i", each) for each in owned])
        assignments.append(wire.blob(pack(">h", 0) + wire.array([listed]) + wire.blob(b"")))
    return assignments


class ConsumerMember:
    """Sends ConsumerGroupHeartbeat (KIP-848); the broker assigns and sets the interval."""

    def __init__(
        self, connection: Connection, group: str, topic: str, topic_id: UUID, board: Board
    ) -> None:
        self.connection = connection
        self._group = group
        self._topics = [topic]
        self._topic_id = topic_id
        self._board = board
        self._member_id = str(uuid4())
        self._epoch = 0
        self._owned: frozenset[int] = frozenset()
        self._last_answer = b""
        self._timer: asyncio.TimerHandle | None = None
        self._rests = False
        self._leaves = False
        self._frame = b""
        self._interval_s = 0.0

    def start(self) -> None:
        self._send_frame(
            wire.consumer_heartbeat(
                self._group, self._member_id, 0, topics=self._topics, owned=(self._topic_id, ())
            )
        )

    async def leave(self) -> None:
        self.stop_heartbeats()
        self._leaves = True
        self._board.remove_member(self)
        await self.connection.call(wire.consumer_heartbeat(self._group, self._member_id, -1))
        self.connection.close()

    def stop_heartbeats(self) -> None:
        self._rests = True
        if self._timer is not None:
            self._timer.cancel()

    def heartbeat(self) -> tuple[bytes, bytes]:
        return self._frame, self._last_answer

    @property
    def identity(self) -> tuple[int, str]:
        return self._epoch, self._member_id

    def _send_frame(self, frame: bytes) -> None:
        self.connection.send(frame, self._handle_answer)

    def _handle_answer(self, answer: bytes) -> None:
        if self._leaves:  # the answer to a heartbeat from before, which may bring an assignment
            return
        if answer == self._last_answer:
            self._heartbeat_later()
            return
        epoch, interval_ms, assigned = wire.consumer_answer(answer)
        if epoch != self._epoch:
            self._epoch = epoch
            self._frame = wire.consumer_heartbeat(self._group, self._member_id, epoch)
        self._interval_s = interval_ms / 1_000
        if assigned is None:
            self._last_answer = answer
            self._board.note_owned(self, epoch, self._owned)
            self._heartbeat_later()
            return
        self._owned = assigned
        self._board.note_owned(self, epoch, assigned)
        self._send_frame(
            wire.consumer_heartbeat(
                self._group, self._member_id, epoch, owned=(self._topic_id, sorted(self._owned))
            )
        )

    def _heartbeat_later(self) -> None:
        if self._rests:
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._interval_s, self._send_frame, self._frame)


def close(members: Sequence[Member]) -> None:
    """Stop the members' heartbeats and close their connections."""
    for member in members:
        member.stop_heartbeats()
        member.connection.close()
