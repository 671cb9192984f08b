"""Join a group by the classic protocol, with our own assignment: any Kafka from 2.5 on.

Theory of operation. One stream thread joins, leaves and reads `read_signal()`; what runs beside it,
on the same host, only sends heartbeats. The group's leader assigns the tasks of all members
(`assign`). Workers are static members: one that comes back with its instance id within the session
time-out gets its tasks back without a rebalance, and whoever held the id before is fenced.

    answer to Join, Sync, Heartbeat              what we do
    REBALANCE_IN_PROGRESS                        signal REBALANCE: commit, then join again
    MEMBER_ID_REQUIRED                           join again with the id given
    UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION,
    FENCED_INSTANCE_ID                           signal LOST: close without a commit, join afresh
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
    no connection                                find the coordinator again, back off
    any other                                    StreamsError
    none, but the stream thread makes no turn    leave, and signal LOST
    for max_poll_interval_ms

On the wire: protocol type `consumer`, protocol name `stream`, ConsumerProtocol's subscription and
assignment with our data as user data, so that Kafka's group tools show the partitions.
Source: KIP-345 (static members), KIP-394 (member id required), KIP-814 (skip assignment).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from kio.schema.errors import ErrorCode

from streams.errors import StreamsError, TaskMigrated
from streams.membership.connection import (
    Connection,
    ConnectionLost,
    Dial,
    build,
    coordinator_of,
    schema,
)
from streams.membership.group_requests import confirm_membership, send_heartbeat, send_sync
from streams.membership.offsets import AWAY, LOST, commit_offsets, fetch_offsets
from streams.membership.protocol import (
    Assigned,
    Subscribed,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from streams.membership.terms import Membership, Plan, Signal, Timeouts
from streams.positions import Committed, CommittedOffsets, Partition
from streams.runtime.host import Host, Spawned
from streams.topology.declared import DeclaredTopology

log = logging.getLogger(__name__)

T = TypeVar("T")

_JOIN, _LEAVE = 11, 13
_BACK_OFF_S = 0.1
_LAPSE_S = 5.0
"""How much later than the rebalance time-out the response to a join or sync may come
(AbstractCoordinator.JOIN_GROUP_TIMEOUT_LAPSE)."""


class _Retry(Exception):
    """Signals that the member has to join again from the start, with the member id given."""


class ClassicMember:
    """Represents one thread's membership of a group, by the classic group protocol.

    `topics` are the topics read, `topology` is declared to whoever leads, and `assign` is called if
    this member leads. Kafka's counterparts are AbstractCoordinator and ConsumerCoordinator.
    """

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
        host: Host,
        topology: DeclaredTopology | None = None,
    ) -> None:
        self._group = group
        self.instance_id = instance_id
        self._topics = tuple(topics)
        self._topology = topology
        self._dial = dial
        self._plan = plan
        self._timeouts = timeouts
        self._stopping = stopping
        self._host = host
        self._connection: Connection | None = None
        self._finding = host.lock()
        self._current = Membership(-1, "")
        self._join_unanswered = False
        self._signalled: tuple[Membership, Signal] | None = None
        self._closed = host.event()
        self._heart: Spawned | None = None
        self.leads = False
        """Whether this member is the group's leader in this generation."""
        self._turned_s = 0.0
        self.silent_since_s: float | None = None
        """The monotonic time in seconds since when heartbeats get no answer."""

    @property
    def current(self) -> Membership:
        """Return the member id and generation that the member has now."""
        return self._current

    def signal(self) -> Signal:
        """Return what heartbeats have signalled in the current generation."""
        signalled = self._signalled
        # Compared by identity: a static member that joins again may get the same id and
        # generation back.
        if signalled is None or signalled[0] is not self._current:
            return Signal.NOTHING
        return signalled[1]

    def turned(self) -> None:
        """Note that the stream thread is not stuck.

        Where this is not called for the rebalance time-out (`max_poll_interval_ms`), heartbeats end
        and the member leaves: others get its tasks, and it reads the signal LOST when it goes on.
        """
        self._turned_s = self._host.monotonic_s()

    def join(self, subscribed: Subscribed) -> Assigned | None:
        """Join the group and return the assignment, None if the thread is to stop.

        Raises: StreamsError where the coordinator refuses for good, or can't be found for
        `join_give_up_ms`; TaskMigrated where it does not know this member any more while the member
        holds tasks.
        """
        if self._heart is None:
            self._heart = self._host.spawn(f"{self.instance_id}-heartbeat", self._beat)
        # Between generations heartbeats stop; a signal that still comes is for the old one.
        self._current = Membership(-1, self._current.member_id)
        trouble_since: float | None = None
        while not self._stopping():
            try:
                joined = self._join(self._current.member_id, subscribed)
                trouble_since = None
                self._current = Membership(-1, joined.member_id)
                assigned = self._sync(joined)
                if assigned.is_for_another(self._topology):
                    self._leave_stale_place(joined.member_id)
                    continue
                self.leads = joined.leader == joined.member_id
                self.turned()
                # A member whose LeaveGroup was lost may get the generation back in which it was
                # signalled LOST.
                self._signalled = None
                self._current = Membership(int(joined.generation_id), joined.member_id)
                return assigned
            except _Retry as retry:
                trouble_since = None
                self._current = Membership(-1, retry.args[0])
                if not self._current.member_id and subscribed.tasks:
                    raise TaskMigrated("replaced while joining: the tasks may have moved") from None
            except ConnectionLost as error:
                now = self._host.monotonic_s()
                trouble_since = now if trouble_since is None else trouble_since
                if now - trouble_since > self._timeouts.give_up_ms / 1000:
                    raise StreamsError(f"can't join group {self._group!r}: {error}") from error
                log.info("joining group %s: %s; trying again", self._group, error)
                self._disconnect()
                self._closed.wait(_BACK_OFF_S)
        return None

    def commit_offsets(self, offsets: Iterable[tuple[Partition, Committed]]) -> bool:
        """Commit offsets outside a transaction; return False if the group refuses this member.

        Raises: ConnectionLost where the outcome is unknown: commit again.
        """
        generation, member_id = self._current
        with self._reconnecting():
            return commit_offsets(
                self._connected(), self._group, generation, member_id, self.instance_id, offsets
            )

    def is_current(self) -> bool:
        """Return whether the coordinator still has this member in its generation.

        Raises: ConnectionLost where that can't be known now, StreamsError for a refusal.
        """
        with self._reconnecting():
            return confirm_membership(
                self._connected(), self._group, self.instance_id, self._current
            )

    def committed_offsets(self, partitions: Iterable[Partition]) -> CommittedOffsets:
        """Fetch the stable committed offsets of the group.

        Raises: ConnectionLost where no coordinator answers: fetch again.
        """
        with self._reconnecting():
            return fetch_offsets(self._connected(), self._group, partitions)

    def leave(self, *, handed_over: bool = False) -> None:
        """Leave the group at once, so that others need not wait for the session to expire.

        `is_handed_over`: the membership is that of a former member with this instance id.
        """
        member_id = self._fall_silent()
        # After a join that was given up there is no member id; the instance id is enough then.
        if member_id or self._join_unanswered or handed_over:
            self._send_leave(member_id, "the worker was closed")
        self._disconnect()

    def _send_leave(self, member_id: str, reason: str) -> None:
        """Send LeaveGroup for a member id, and only log it if no answer comes."""
        try:
            connection = self._connected()
            module = schema(connection, _LEAVE, 5)
            identity = build(
                module["MemberIdentity"],
                member_id=member_id,
                group_instance_id=self.instance_id,
                reason=reason,
            )
            connection.request(
                build(module["LeaveGroupRequest"], group_id=self._group, members=(identity,))
            )
        except ConnectionLost as error:
            log.info("left group %s without an answer: %s", self._group, error)

    def hand_over(self) -> None:
        """End but stay in the group: who joins next with this instance id takes over."""
        self._fall_silent()
        self._disconnect()

    def _fall_silent(self) -> str:
        """End the heartbeats, give up the member id and return it."""
        self._closed.set()
        if self._heart is not None:
            self._heart.join()
        _, member_id = self._current
        self._current = Membership(-1, "")
        return member_id

    def _join(self, member_id: str, subscribed: Subscribed) -> Any:
        """Send JoinGroup and return the response once all members have joined.

        Raises: _RejoinNeeded, ConnectionLost, or StreamsError for a refusal.
        """
        connection = self._connected()
        module = schema(connection, _JOIN, 9)
        protocol = module["JoinGroupRequestProtocol"](
            name="stream",
            metadata=encode_subscription(self._topics, subscribed, self._topology),
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
        self._join_unanswered = True
        answer = connection.request(
            request,
            timeout_s=self._timeouts.rebalance_ms / 1000 + _LAPSE_S,
            given_up=self._stopping,
        )
        self._join_unanswered = False
        code = answer.error_code
        if code is ErrorCode.none:
            return answer
        if code is ErrorCode.member_id_required:
            raise _Retry(answer.member_id)
        if code in LOST:
            raise _Retry("")
        raise self._refused("join", code)

    def _sync(self, joined: Any) -> Assigned:
        """Assign tasks if this member leads, send SyncGroup and return the own assignment.

        Raises: _RejoinNeeded, ConnectionLost, or StreamsError for a refusal.
        """
        assignments: dict[str, bytes] = {}
        # A static leader that comes back to a stable group gets the members but must not assign.
        if joined.leader == joined.member_id and not getattr(joined, "skip_assignment", False):
            members = {
                each.member_id: self._ours(decode_subscription, each.metadata)
                for each in joined.members
            }
            assignments = {
                member_id: encode_assignment(assigned)
                for member_id, assigned in self._plan(members).items()
            }
        answer = send_sync(
            self._connected(),
            self._group,
            self.instance_id,
            Membership(joined.generation_id, joined.member_id),
            assignments,
            timeout_s=self._timeouts.rebalance_ms / 1000 + _LAPSE_S,
            given_up=self._stopping,
        )
        code = answer.error_code
        if code is ErrorCode.none:
            return self._ours(decode_assignment, answer.assignment)
        if code in (ErrorCode.rebalance_in_progress, ErrorCode.illegal_generation):
            raise _Retry(joined.member_id)
        if code in LOST:
            raise _Retry("")
        raise self._refused("sync", code)

    def _leave_stale_place(self, member_id: str) -> None:
        """Leave the group, so that the next join is a rebalance.

        The coordinator answers a static member that joins a stable group with its last assignment,
        whatever has changed (KIP-345).
        """
        log.info("%s has another topology than before: it joins anew", self.instance_id)
        self._send_leave(member_id, "the topology has changed")
        self._current = Membership(-1, "")

    def _ours(self, decode: Callable[[bytes], T], data: bytes) -> T:
        """Decode user data, and raise StreamsError if it is of another application."""
        try:
            return decode(data)
        except ValueError as error:
            raise StreamsError(
                f"group {self._group!r} has members that are not of this application ({error}): "
                "stop them, or choose another application id"
            ) from error

    def _refused(self, doing: str, code: ErrorCode) -> Exception:
        """Return the error that an error code of join or sync stands for."""
        if code in AWAY:
            return ConnectionLost(f"{doing}: {code.name}")
        return StreamsError(
            f"group {self._group!r} refused to {doing} member {self.instance_id!r}: "
            f"{code.name} ({code.value})"
        )

    def _beat(self) -> None:
        """Send heartbeats and note what they signal, until the member is closed."""
        while not self._closed.wait(self._timeouts.heartbeat_ms / 1000):
            current = self._current
            if current.generation < 0 or self.signal() is Signal.LOST:
                continue
            if self._is_stuck():
                self._signalled = (current, Signal.LOST)
                self._send_leave(current.member_id, "max_poll_interval_ms was exceeded")
                continue
            try:
                code = self._heartbeat(current)
            except ConnectionLost as error:
                log.info("heartbeat of %s: %s", self.instance_id, error)
                self._unanswered()
                continue
            if code not in AWAY:
                self.silent_since_s = None
            if code is ErrorCode.rebalance_in_progress:
                self._signalled = (current, Signal.REBALANCE)
            elif code in LOST:
                log.warning("%s has lost its membership: %s", self.instance_id, code.name)
                self._signalled = (current, Signal.LOST)
            elif code in AWAY:
                self._unanswered()
            elif code is not ErrorCode.none:
                log.error("heartbeat of %s refused: %s", self.instance_id, code.name)

    def _is_stuck(self) -> bool:
        """Return whether the stream thread made no turn for the rebalance time-out; log if so."""
        silent_ms = (self._host.monotonic_s() - self._turned_s) * 1000
        if silent_ms <= self._timeouts.rebalance_ms:
            return False
        log.warning(
            "%s leaves group %s: its thread has been busy for %d ms, and max_poll_interval_ms is "
            "%d. A record takes too long: make it quicker, or raise the setting",
            self.instance_id,
            self._group,
            silent_ms,
            self._timeouts.rebalance_ms,
        )
        return True

    def _unanswered(self) -> None:
        """Note since when heartbeats get no answer, and close the connection."""
        if self.silent_since_s is None:
            self.silent_since_s = self._host.monotonic_s()
        self._disconnect()

    def _heartbeat(self, current: Membership) -> ErrorCode:
        """Send one heartbeat and return the error code of its answer."""
        return send_heartbeat(self._connected(), self._group, self.instance_id, current)

    def _connected(self) -> Connection:
        """Return the connection to the coordinator, which is found and connected to if need be."""
        with self._finding:  # the stream thread and the heartbeats share one connection
            if self._connection is None:
                self._connection = self._dial(self._coordinator())
            return self._connection

    def _coordinator(self) -> tuple[str, int]:
        """Return the address of the group's coordinator, asked of a bootstrap server."""
        with closing(self._dial(None)) as bootstrap:
            return coordinator_of(bootstrap, self._group)

    @contextmanager
    def _reconnecting(self) -> Iterator[None]:
        """Close a connection that is lost in the body: the next request finds the coordinator."""
        try:
            yield
        except ConnectionLost:
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
