"""Membership by the classic group protocol, with our own assignment: any Kafka from 2.5 on.

Theory of operation. One stream thread joins, leaves and reads `signal()`; a thread of this class
only sends heartbeats. The group's leader assigns the tasks of all members (`plan`). Workers are
static members: one that comes back with its instance id within the session time-out gets its tasks
back without a rebalance, and whoever held the id before is fenced.

    answer to Join, Sync, Heartbeat              what we do
    27 REBALANCE_IN_PROGRESS                     signal REBALANCE: commit, then join again
    79 MEMBER_ID_REQUIRED                        join again with the id given
    25 UNKNOWN_MEMBER_ID, 22 ILLEGAL_GENERATION,
    82 FENCED_INSTANCE_ID                        signal LOST: close without a commit, join afresh
    14, 15, 16, no connection                    find the coordinator again, back off
    any other                                    StreamsError

On the wire: protocol type `consumer`, protocol name `stream`, ConsumerProtocol's subscription and
assignment with our data as user data, so that Kafka's group tools show the partitions.
Source: KIP-345 (static members), KIP-394 (member id required), KIP-814 (skip assignment).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from enum import Enum, auto
from typing import Any, NamedTuple

from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from streams.errors import StreamsError, TaskMigrated
from streams.membership.connection import Connection, ConnectionLost, build
from streams.membership.protocol import (
    Assigned,
    Subscribed,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

log = logging.getLogger(__name__)

_FIND_COORDINATOR, _OFFSET_COMMIT = 10, 8
_JOIN, _HEARTBEAT, _LEAVE, _SYNC = 11, 12, 13, 14
_BACK_OFF_S = 0.1
_AWAY = {
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
}
_LOST = {
    ErrorCode.unknown_member_id,
    ErrorCode.illegal_generation,
    ErrorCode.fenced_instance_id,
}

Dial = Callable[[tuple[str, int] | None], Connection]
"""Connects to an address, or (None) to any of the bootstrap servers."""
Plan = Callable[[Mapping[str, Subscribed]], dict[str, Assigned]]
"""The leader's duty: what each member gets, given what each has."""


class Signal(Enum):
    """What the stream thread must do about its membership."""

    NOTHING = auto()
    REBALANCE = auto()
    LOST = auto()


class Timeouts(NamedTuple):
    """The member's times, in ms."""

    session_ms: int
    heartbeat_ms: int
    rebalance_ms: int
    give_up_ms: int


class Membership(NamedTuple):
    """Who we are in one generation of the group. Generation -1: nobody."""

    generation: int
    member_id: str


class _Retry(Exception):
    """Join again from the start."""


class ClassicMember:
    """One member of a group. `topics` are the topics read, `plan` is called if it leads."""

    def __init__(
        self,
        group: str,
        instance_id: str,
        topics: Iterable[str],
        *,
        dial: Dial,
        plan: Plan,
        timeouts: Timeouts,
        stopping: Callable[[], bool],
    ) -> None:
        self._group = group
        self.instance_id = instance_id
        self._topics = tuple(topics)
        self._dial = dial
        self._plan = plan
        self._timeouts = timeouts
        self._stopping = stopping
        self._connection: Connection | None = None
        self._current = Membership(-1, "")
        self._signalled: tuple[Membership, Signal] | None = None
        self._closed = threading.Event()
        self._heart = threading.Thread(
            target=self._beat, name=f"{instance_id}-heartbeat", daemon=True
        )
        self._heart.start()

    @property
    def current(self) -> Membership:
        return self._current

    def signal(self) -> Signal:
        """What heartbeats have brought for the generation that we are in."""
        signalled = self._signalled
        if signalled is None or signalled[0] != self._current:
            return Signal.NOTHING
        return signalled[1]

    def join(self, subscribed: Subscribed) -> Assigned | None:
        """Join, and wait for the assignment. None if the thread is to stop.

        Raises StreamsError where the coordinator refuses for good, or can't be found for
        `give_up_ms`; TaskMigrated where it does not know us any more while we hold tasks.
        """
        # Between generations: heartbeats stop, and what they still bring is for the old one.
        member_id, self._current = self._current.member_id, Membership(-1, "")
        deadline = time.monotonic() + self._timeouts.give_up_ms / 1000
        while not self._stopping():
            try:
                joined = self._join(member_id, subscribed)
                member_id = joined.member_id
                assigned = self._sync(joined)
                self._current = Membership(int(joined.generation_id), member_id)
                return assigned
            except _Retry as retry:
                member_id = retry.args[0]
                if not member_id and subscribed.tasks:
                    raise TaskMigrated("replaced while joining: the tasks may have moved") from None
            except ConnectionLost as error:
                if time.monotonic() > deadline:
                    raise StreamsError(f"can't join group {self._group!r}: {error}") from error
                log.info("joining group %s: %s; trying again", self._group, error)
                self._disconnect()
                self._closed.wait(_BACK_OFF_S)
        return None

    def commit_offsets(self, offsets: Iterable[tuple[tuple[str, int], tuple[int, str]]]) -> bool:
        """Commit outside a transaction, as this member. False if the group has moved on.

        Raises ConnectionLost where the outcome is unknown: commit again.
        """
        topics: dict[str, list[tuple[int, int, str]]] = {}
        for (topic, partition), (offset, metadata) in offsets:
            topics.setdefault(topic, []).append((partition, offset, metadata))
        connection = self._connected()
        module = _schema(connection, _OFFSET_COMMIT, 9)
        request = build(
            module["OffsetCommitRequest"],
            group_id=self._group,
            generation_id_or_member_epoch=self._current.generation,
            member_id=self._current.member_id,
            group_instance_id=self.instance_id,
            topics=tuple(
                build(
                    module["OffsetCommitRequestTopic"],
                    name=topic,
                    partitions=tuple(
                        build(
                            module["OffsetCommitRequestPartition"],
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata=metadata,
                        )
                        for partition, offset, metadata in partitions
                    ),
                )
                for topic, partitions in topics.items()
            ),
        )
        answer = connection.request(request)
        codes = {part.error_code for topic in answer.topics for part in topic.partitions}
        codes.discard(ErrorCode.none)
        if codes & (_LOST | {ErrorCode.rebalance_in_progress}):
            return False
        if codes & _AWAY:
            self._disconnect()
            raise ConnectionLost(str(codes))
        if codes:
            raise StreamsError(f"offsets of group {self._group!r} can't be committed: {codes}")
        return True

    def leave(self) -> None:
        """Leave the group at once, so that others need not wait for the session to expire."""
        self._closed.set()
        self._heart.join()
        _, member_id = self._current
        self._current = Membership(-1, "")
        try:
            if member_id:
                connection = self._connected()
                module = _schema(connection, _LEAVE, 5)
                identity = build(
                    module["MemberIdentity"],
                    member_id=member_id,
                    group_instance_id=self.instance_id,
                    reason="the worker was closed",
                )
                connection.request(
                    build(module["LeaveGroupRequest"], group_id=self._group, members=(identity,))
                )
        except ConnectionLost as error:
            log.info("left group %s without an answer: %s", self._group, error)
        self._disconnect()

    def _join(self, member_id: str, subscribed: Subscribed) -> Any:
        connection = self._connected()
        module = _schema(connection, _JOIN, 9)
        protocol = module["JoinGroupRequestProtocol"](
            name="stream", metadata=encode_subscription(self._topics, subscribed)
        )
        request = build(
            module["JoinGroupRequest"],
            group_id=self._group,
            session_timeout=timedelta(milliseconds=self._timeouts.session_ms),
            rebalance_timeout=timedelta(milliseconds=self._timeouts.rebalance_ms),
            member_id=member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=(protocol,),
        )
        # The coordinator answers when all members have joined, at most the rebalance time-out.
        answer = connection.request(
            request,
            timeout_s=self._timeouts.rebalance_ms / 1000 + 30,
            given_up=self._stopping,
        )
        code = answer.error_code
        if code is ErrorCode.none:
            return answer
        if code is ErrorCode.member_id_required:
            raise _Retry(answer.member_id)
        if code in _LOST:
            raise _Retry("")
        raise self._refused("join", code)

    def _sync(self, joined: Any) -> Assigned:
        connection = self._connected()
        module = _schema(connection, _SYNC, 5)
        assignments: tuple[Any, ...] = ()
        # A static leader that comes back to a stable group gets the members but must not assign.
        if joined.leader == joined.member_id and not getattr(joined, "skip_assignment", False):
            members = {m.member_id: decode_subscription(m.metadata) for m in joined.members}
            entity = module["SyncGroupRequestAssignment"]
            assignments = tuple(
                build(entity, member_id=member_id, assignment=encode_assignment(assigned))
                for member_id, assigned in self._plan(members).items()
            )
        answer = connection.request(
            build(
                module["SyncGroupRequest"],
                group_id=self._group,
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                group_instance_id=self.instance_id,
                protocol_type="consumer",
                protocol_name="stream",
                assignments=assignments,
            ),
            timeout_s=self._timeouts.rebalance_ms / 1000 + 30,
            given_up=self._stopping,
        )
        code = answer.error_code
        if code is ErrorCode.none:
            return decode_assignment(answer.assignment)
        if code in (ErrorCode.rebalance_in_progress, ErrorCode.illegal_generation):
            raise _Retry(joined.member_id)
        if code in _LOST:
            raise _Retry("")
        raise self._refused("sync", code)

    def _refused(self, doing: str, code: ErrorCode) -> Exception:
        if code in _AWAY:
            return ConnectionLost(f"{doing}: {code.name}")
        return StreamsError(
            f"group {self._group!r} refused to {doing} member {self.instance_id!r}: "
            f"{code.name} ({code.value})"
        )

    def _beat(self) -> None:
        while not self._closed.wait(self._timeouts.heartbeat_ms / 1000):
            current = self._current
            if current.generation < 0:
                continue
            try:
                code = self._heartbeat(current)
            except ConnectionLost as error:
                log.info("heartbeat of %s: %s", self.instance_id, error)
                self._disconnect()
                continue
            if code is ErrorCode.rebalance_in_progress:
                self._signalled = (current, Signal.REBALANCE)
            elif code in _LOST:
                log.warning("%s has lost its membership: %s", self.instance_id, code.name)
                self._signalled = (current, Signal.LOST)
            elif code in _AWAY:
                self._disconnect()
            elif code is not ErrorCode.none:
                log.error("heartbeat of %s refused: %s", self.instance_id, code.name)

    def _heartbeat(self, current: Membership) -> ErrorCode:
        connection = self._connected()
        module = _schema(connection, _HEARTBEAT, 4)
        request = build(
            module["HeartbeatRequest"],
            group_id=self._group,
            generation_id=current.generation,
            member_id=current.member_id,
            group_instance_id=self.instance_id,
        )
        code: ErrorCode = connection.request(request).error_code
        return code

    def _connected(self) -> Connection:
        """The connection to the coordinator; found and made if there is none."""
        connection = self._connection
        if connection is None:
            bootstrap = self._dial(None)
            try:
                answer = bootstrap.request(
                    load_request_schema(_FIND_COORDINATOR, 3)(key=self._group)  # type: ignore[call-arg]
                )
            finally:
                bootstrap.close()
            if answer.error_code is not ErrorCode.none:
                raise ConnectionLost(f"no coordinator: {answer.error_code.name}")
            connection = self._connection = self._dial((answer.host, answer.port))
        return connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _schema(connection: Connection, api_key: int, wanted: int) -> dict[str, Any]:
    """The classes of a request in the version that both sides have."""
    request_type = load_request_schema(api_key, connection.version(api_key, wanted))
    return vars(__import__(request_type.__module__, fromlist=["_"]))
