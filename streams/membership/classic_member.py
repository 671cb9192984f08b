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
    any other, refused credentials               StreamsError
    none, but the stream thread makes no turn    leave, and signal LOST
    for max_poll_interval_ms

On the wire: protocol type `consumer`, protocol name `stream`, ConsumerProtocol's subscription and
assignment with our data as user data, so that Kafka's group tools show the partitions.
Source: KIP-345 (static members), KIP-394 (member id required), KIP-814 (skip assignment).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, TypeVar

from kio.schema.errors import ErrorCode

from streams.common.host import Host
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import StreamsError, TaskMigrated
from streams.membership.authorization import check_authorized
from streams.membership.connection import (
    ConnectionLost,
    OpenConnection,
    build_entity,
    load_request_classes,
)
from streams.membership.coordinator_connection import CoordinatorConnection
from streams.membership.group_member import (
    AssignGroup,
    GroupMember,
    Membership,
    MembershipSignal,
    MemberTimeouts,
)
from streams.membership.group_offsets import (
    COORDINATOR_UNAVAILABLE_ERRORS,
    MEMBERSHIP_LOST_ERRORS,
    commit_offsets,
    fetch_offsets,
)
from streams.membership.group_requests import confirm_membership, send_sync_group
from streams.membership.heartbeat_thread import HeartbeatThread
from streams.membership.protocol import (
    AssignmentInfo,
    SubscriptionInfo,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from streams.topology.declared import DeclaredTopology

log = logging.getLogger(__name__)

T = TypeVar("T")

_JOIN_GROUP_API_KEY, _LEAVE_GROUP_API_KEY = 11, 13
_BACK_OFF_S = 0.1
_JOIN_TIMEOUT_LAPSE_S = 5.0
"""How much later than the rebalance time-out the response to a join or sync may come
(AbstractCoordinator.JOIN_GROUP_TIMEOUT_LAPSE)."""


class _RejoinNeeded(Exception):
    """Signals that the member has to join again from the start, with the member id given."""


class ClassicProtocolMember(GroupMember):
    """Represents one thread's membership of a group, by the classic group protocol.

    `topics` are the topics read, `topology` is declared to whoever leads, and `assign` is called if
    this member leads. Kafka's counterparts are AbstractCoordinator and ConsumerCoordinator.
    """

    def __init__(
        self,
        group_id: str,
        instance_id: str,
        topics: Iterable[str],
        *,
        open_connection: OpenConnection,
        assign: AssignGroup,
        timeouts: MemberTimeouts,
        is_stopping: Callable[[], bool],
        host: Host,
        topology: DeclaredTopology | None = None,
    ) -> None:
        self._group_id = group_id
        self.instance_id = instance_id
        self._topics = tuple(topics)
        self._topology = topology
        self._coordinator = CoordinatorConnection(group_id, open_connection, host)
        self._assign = assign
        self._timeouts = timeouts
        self._is_stopping = is_stopping
        self._host = host
        self._current = Membership(-1, "")
        self._is_join_unanswered = False
        self._closed = host.create_event()
        self._heartbeats = HeartbeatThread(
            group_id,
            instance_id,
            coordinator=self._coordinator,
            timeouts=timeouts,
            host=host,
            closed=self._closed,
            read_membership=lambda: self._current,
            send_leave_group=self._send_leave_group,
        )
        self.is_leader = False
        """Whether this member is the group's leader in this generation."""

    @property
    def current_membership(self) -> Membership:
        """Return the member id and generation that the member has now."""
        return self._current

    @property
    def silent_since_s(self) -> float | None:
        """Return the monotonic time in seconds since when heartbeats get no answer."""
        return self._heartbeats.silent_since_s

    def read_signal(self) -> MembershipSignal:
        """Return what heartbeats have signalled in the current generation.

        Raises: the error that has ended the heartbeats, such as AuthenticationError.
        """
        return self._heartbeats.read_signal()

    def mark_progress(self) -> None:
        """Note that the stream thread is not stuck.

        Where this is not called for the rebalance time-out (`max_poll_interval_ms`), heartbeats end
        and the member leaves: others get its tasks, and it reads the signal LOST when it goes on.
        """
        self._heartbeats.mark_progress()

    def join_group(self, subscription: SubscriptionInfo) -> AssignmentInfo | None:
        """Join the group and return the assignment, None if the thread is to stop.

        Raises: StreamsError where the coordinator refuses for good, or can't be found for
        `join_give_up_ms`; TaskMigrated where it does not know this member any more while the member
        holds tasks.
        """
        self._heartbeats.ensure_started()
        # Between generations heartbeats stop; a signal that still comes is for the old one.
        self._current = Membership(-1, self._current.member_id)
        trouble_since: float | None = None
        while not self._is_stopping():
            try:
                joined = self._send_join_group(self._current.member_id, subscription)
                trouble_since = None
                self._current = Membership(-1, joined.member_id)
                assigned = self._assign_and_sync(joined)
                if assigned.is_for_other_topology(self._topology):
                    self._leave_stale_membership(joined.member_id)
                    continue
                self.is_leader = joined.leader == joined.member_id
                self.mark_progress()
                self._current = Membership(int(joined.generation_id), joined.member_id)
                return assigned
            except _RejoinNeeded as retry:
                trouble_since = None
                self._current = Membership(-1, retry.args[0])
                if not self._current.member_id and subscription.tasks:
                    raise TaskMigrated("replaced while joining: the tasks may have moved") from None
            except ConnectionLost as error:
                now = self._host.monotonic_s()
                trouble_since = now if trouble_since is None else trouble_since
                if now - trouble_since > self._timeouts.join_give_up_ms / 1000:
                    raise StreamsError(f"can't join group {self._group_id!r}: {error}") from error
                log.info("joining group %s: %s; trying again", self._group_id, error)
                self._coordinator.close_connection()
                self._closed.wait(_BACK_OFF_S)
        return None

    def commit_offsets(self, offsets: Iterable[tuple[Partition, OffsetAndMetadata]]) -> bool:
        """Commit offsets outside a transaction; return False if the group refuses this member.

        Raises: ConnectionLost where the outcome is unknown: commit again.
        """
        generation, member_id = self._current
        with self._coordinator.disconnect_on_loss():
            return commit_offsets(
                self._coordinator.ensure_connection(),
                self._group_id,
                generation,
                member_id,
                self.instance_id,
                offsets,
            )

    def confirm_membership(self) -> bool:
        """Return whether the coordinator still has this member in its generation.

        Raises: ConnectionLost where that can't be known now, StreamsError for a refusal.
        """
        with self._coordinator.disconnect_on_loss():
            return confirm_membership(
                self._coordinator.ensure_connection(),
                self._group_id,
                self.instance_id,
                self._current,
            )

    def fetch_committed_offsets(self, partitions: Iterable[Partition]) -> CommittedOffsets:
        """Fetch the group's committed offsets, and the partitions whose offset is still pending.

        Raises: ConnectionLost where no coordinator answers: fetch again.
        """
        with self._coordinator.disconnect_on_loss():
            return fetch_offsets(
                self._coordinator.ensure_connection(), self._group_id, partitions, operation="Read"
            )

    def renew_connection(self) -> None:
        """Open another connection at the next request; the membership goes on."""
        self._coordinator.renew_connection()

    def leave_group(self, *, is_handed_over: bool = False) -> None:
        """Leave the group at once, so that others need not wait for the session to expire.

        `is_handed_over`: the membership is that of a former member with this instance id.
        """
        member_id = self._end_heartbeats()
        # After a join that was given up there is no member id; the instance id is enough then.
        if member_id or self._is_join_unanswered or is_handed_over:
            self._send_leave_group(member_id, "the worker was closed")
        self._coordinator.close_connection()

    def _send_leave_group(self, member_id: str, reason: str) -> None:
        """Send LeaveGroup for a member id, and only log it if no answer comes."""
        try:
            connection = self._coordinator.ensure_connection()
            module = load_request_classes(connection, _LEAVE_GROUP_API_KEY, 5)
            identity = build_entity(
                module["MemberIdentity"],
                member_id=member_id,
                group_instance_id=self.instance_id,
                reason=reason,
            )
            connection.send_request(
                build_entity(
                    module["LeaveGroupRequest"], group_id=self._group_id, members=(identity,)
                )
            )
        except (ConnectionLost, StreamsError) as error:
            log.info("left group %s without an answer: %s", self._group_id, error)

    def hand_over_membership(self) -> None:
        """End without leaving the group, so that a successor with this instance id takes over."""
        self._end_heartbeats()
        self._coordinator.close_connection()

    def _end_heartbeats(self) -> str:
        """End the heartbeats, give up the member id and return it."""
        self._closed.set()
        self._heartbeats.join_thread()
        _, member_id = self._current
        self._current = Membership(-1, "")
        return member_id

    def _send_join_group(self, member_id: str, subscription: SubscriptionInfo) -> Any:
        """Send JoinGroup and return the response once all members have joined.

        Raises: _RejoinNeeded, ConnectionLost, or StreamsError for a refusal.
        """
        connection = self._coordinator.ensure_connection()
        module = load_request_classes(connection, _JOIN_GROUP_API_KEY, 9)
        protocol = module["JoinGroupRequestProtocol"](
            name="stream",
            metadata=encode_subscription(self._topics, subscription, self._topology),
        )
        request = build_entity(
            module["JoinGroupRequest"],
            group_id=self._group_id,
            session_timeout=timedelta(milliseconds=self._timeouts.session_ms),
            rebalance_timeout=timedelta(milliseconds=self._timeouts.rebalance_ms),
            member_id=member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=(protocol,),
        )
        # The coordinator answers when all members have joined, at most the rebalance time-out.
        self._is_join_unanswered = True
        answer = connection.send_request(
            request,
            timeout_s=self._timeouts.rebalance_ms / 1000 + _JOIN_TIMEOUT_LAPSE_S,
            is_given_up=self._is_stopping,
        )
        self._is_join_unanswered = False
        code = answer.error_code
        if code is ErrorCode.none:
            return answer
        if code is ErrorCode.member_id_required:
            raise _RejoinNeeded(answer.member_id)
        if code in MEMBERSHIP_LOST_ERRORS:
            raise _RejoinNeeded("")
        raise self._to_join_error("join", code)

    def _assign_and_sync(self, join_response: Any) -> AssignmentInfo:
        """Assign tasks if this member leads, send SyncGroup and return the own assignment.

        Raises: _RejoinNeeded, ConnectionLost, or StreamsError for a refusal.
        """
        assignments: dict[str, bytes] = {}
        # A static leader that comes back to a stable group gets the members but must not assign.
        if join_response.leader == join_response.member_id and not getattr(
            join_response, "skip_assignment", False
        ):
            members = {
                each.member_id: self._decode_user_data(decode_subscription, each.metadata)
                for each in join_response.members
            }
            assignments = {
                member_id: encode_assignment(assigned)
                for member_id, assigned in self._assign(members).items()
            }
        answer = send_sync_group(
            self._coordinator.ensure_connection(),
            self._group_id,
            self.instance_id,
            Membership(join_response.generation_id, join_response.member_id),
            assignments,
            timeout_s=self._timeouts.rebalance_ms / 1000 + _JOIN_TIMEOUT_LAPSE_S,
            is_given_up=self._is_stopping,
        )
        code = answer.error_code
        if code is ErrorCode.none:
            return self._decode_user_data(decode_assignment, answer.assignment)
        if code in (ErrorCode.rebalance_in_progress, ErrorCode.illegal_generation):
            raise _RejoinNeeded(join_response.member_id)
        if code in MEMBERSHIP_LOST_ERRORS:
            raise _RejoinNeeded("")
        raise self._to_join_error("sync", code)

    def _leave_stale_membership(self, member_id: str) -> None:
        """Leave the group as this static member, so that its next join starts a rebalance.

        The coordinator answers a static member that joins a stable group with its last assignment,
        whatever has changed (KIP-345).
        """
        log.info("%s has another topology than before: it joins anew", self.instance_id)
        self._send_leave_group(member_id, "the topology has changed")
        self._current = Membership(-1, "")

    def _decode_user_data(self, decode: Callable[[bytes], T], data: bytes) -> T:
        """Decode user data, and raise StreamsError if it is of another application."""
        try:
            return decode(data)
        except ValueError as error:
            raise StreamsError(
                f"group {self._group_id!r} has members that are not of this application ({error}): "
                "stop them, or choose another application id"
            ) from error

    def _to_join_error(self, action: str, code: ErrorCode) -> Exception:
        """Return the error that an error code of join or sync stands for.

        Raises: AuthorizationError.
        """
        check_authorized(code, "Read", self._group_id)
        if code in COORDINATOR_UNAVAILABLE_ERRORS:
            return ConnectionLost(f"{action}: {code.name}")
        return StreamsError(
            f"group {self._group_id!r} refused to {action} member {self.instance_id!r}: "
            f"{code.name} ({code.value})"
        )
