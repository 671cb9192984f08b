"""Join a group from a thread beside the stream thread, which goes on with its tasks meanwhile.

Theory of operation. One `GroupJoin` sends JoinGroup and SyncGroup until the group has an assignment
for the member. It has a connection of its own, since JoinGroup is answered only when all members
have joined. What it has come to is one immutable value, `progress`, which its thread alone
replaces, and the stream thread and the heartbeats read:

    progress                   what holds
    is_sent                    a JoinGroup may be on its way, or may have lost its answer
    is_answered                the group is in a later generation: offsets are refused in the former
    membership                 of generation -1 while no JoinGroup is answered
    assignment or failure      the join is over

Once JoinGroup is answered the coordinator expects heartbeats until it gets SyncGroup: a leader may
take its time to assign. Heartbeats of that generation keep the member (`HeartbeatThread`), as in
Kafka's AbstractCoordinator, and what they are answered the join finds out by its SyncGroup.

It goes on until the assignment is there, an error ends it, or it is given up. Once `is_answered` is
true it stays so, also where the next SyncGroup is answered with REBALANCE_IN_PROGRESS.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from kio.schema.errors import ErrorCode

from streams.common.host import Event, Host
from streams.errors import BrokerUnavailable, StreamsError, TaskMigrated
from streams.membership.authorization import check_authorized
from streams.membership.broker_outage import IsOverdue
from streams.membership.connection import ConnectionLost, build_entity, load_request_classes
from streams.membership.coordinator_connection import CoordinatorConnection
from streams.membership.foreign_members import describe_foreign_members, explain_foreign_members
from streams.membership.group_member import AssignGroup, Membership, MemberTimeouts
from streams.membership.group_offsets import COORDINATOR_UNAVAILABLE_ERRORS, MEMBERSHIP_LOST_ERRORS
from streams.membership.group_record import (
    FetchSizeLimits,
    GroupSizeLimits,
    check_group_record,
    check_join_request,
)
from streams.membership.group_requests import send_sync_group
from streams.membership.instance_fencing import InstanceFencing
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

_JOIN_GROUP_API_KEY = 11
_BACK_OFF_S = 0.1
_JOIN_TIMEOUT_LAPSE_S = 5.0
"""The seconds past the rebalance time-out for which a join or sync waits for its response.

Kafka's counterpart is AbstractCoordinator.JOIN_GROUP_TIMEOUT_LAPSE.
"""


class _RejoinNeeded(Exception):
    """Signals that the member has to join again from the start, and why.

    `member_id` is what it joins with: empty where the group does not know the member any more.
    """

    def __init__(self, member_id: str, reason: str) -> None:
        super().__init__(reason)
        self.member_id = member_id


AbortDeparted = Callable[[Collection[str], Callable[[], bool]], object]
"""Aborts open transactions of the application's threads that are not among these members.

It goes on while the function returns true: then they are still the members of the group.
"""


class JoinProgress(NamedTuple):
    """Represents the state that a join of the group has reached; see the module's table."""

    membership: Membership
    is_sent: bool = False
    is_answered: bool = False
    assignment: AssignmentInfo | None = None
    is_leader: bool = False
    failure: Exception | None = None

    @property
    def is_over(self) -> bool:
        """Return whether the join has an assignment, or has failed."""
        return self.assignment is not None or self.failure is not None


class GroupJoin:
    """Joins a group once, for the member `member_id`, which the group may not know yet.

    `assign` is called if this member leads, and `abort_departed` with the instance ids of all
    members once it has entered the generation that it leads. `send_leave_group` sends LeaveGroup
    for a member id and a reason. `fencing` counts FENCED_INSTANCE_ID.
    `is_given_up` ends the join without a result, and sets `closed` if
    it waits. `is_latest` tells whether the member has started no other join since.
    """

    def __init__(
        self,
        group_id: str,
        instance_id: str,
        member_id: str,
        *,
        topics: tuple[str, ...],
        subscription: SubscriptionInfo,
        topology: DeclaredTopology,
        coordinator: CoordinatorConnection,
        assign: AssignGroup,
        abort_departed: AbortDeparted,
        timeouts: MemberTimeouts,
        is_overdue: IsOverdue,
        host: Host,
        closed: Event,
        is_given_up: Callable[[], bool],
        is_latest: Callable[[], bool],
        send_leave_group: Callable[[str, str], None],
        fencing: InstanceFencing | None = None,
        fetch_size_limits: FetchSizeLimits = GroupSizeLimits,
    ) -> None:
        self._group_id = group_id
        self._instance_id = instance_id
        self._topics = topics
        self._subscription = subscription
        self._topology = topology
        self._coordinator = coordinator
        self._assign = assign
        self._abort_departed = abort_departed
        self._led_members: set[str] = set()
        """The instance ids of the members to which this one has assigned tasks in this attempt."""
        self._timeouts = timeouts
        self._is_overdue = is_overdue
        self._host = host
        self._closed = closed
        self._is_given_up = is_given_up
        self._is_latest = is_latest
        self._send_leave_group = send_leave_group
        self._fencing = fencing
        self._fetch_size_limits = fetch_size_limits
        self._over = host.create_event()
        self.progress = JoinProgress(Membership(-1, member_id))
        self._thread = host.spawn_thread(f"{instance_id}-join", self._run_thread)

    def wait_until_over(self, timeout_s: float) -> bool:
        """Wait at most `timeout_s` seconds, and return whether the join is over."""
        return self.progress.is_over or (timeout_s > 0 and self._over.wait(timeout_s))

    def join_thread(self) -> None:
        """Wait until the thread has ended, which it does once the join is over or given up."""
        self._thread.join()

    def _run_thread(self) -> None:
        """Join the group, and publish the assignment or the error that ends the join."""
        try:
            self._join_until_assigned()
        except Exception as error:
            no_generation = Membership(-1, self.progress.membership.member_id)
            self.progress = self.progress._replace(membership=no_generation, failure=error)
        finally:
            self._coordinator.close_connection()
            self._over.set()
        if self.progress.is_leader and self._led_members:
            # Whoever takes over a task of a thread that is gone waits for its transaction.
            self._abort_departed(
                self._led_members, lambda: self._is_latest() and not self._is_given_up()
            )

    def _join_until_assigned(self) -> None:
        """Send JoinGroup and SyncGroup until there is an assignment, or the join is given up.

        Raises: StreamsError where the coordinator refuses for good; BrokerUnavailable where it
        can't be found for `join_give_up_ms` while brokers answer, or forgets the member again and
        again for as long; TaskMigrated where it does not know this member any more while the member
        holds tasks; what `assign` raises.
        """
        trouble_since: float | None = None
        forgotten_since: float | None = None
        while not self._is_given_up():
            self._led_members = set()
            member_id = self.progress.membership.member_id
            try:
                self._set_member_id(member_id)
                joined = self._send_join_group(member_id)
                trouble_since = None
                membership = Membership(int(joined.generation_id), joined.member_id)
                self.progress = JoinProgress(membership, is_answered=True)
                assigned = self.assign_and_sync(joined)
                if assigned.is_for_other_topology(self._topology):
                    self._leave_stale_membership(joined.member_id)
                    continue
                # The same object: what heartbeats were answered meanwhile is a signal of it.
                self.progress = JoinProgress(
                    membership,
                    is_answered=True,
                    assignment=assigned,
                    is_leader=joined.leader == joined.member_id,
                )
                return
            except _RejoinNeeded as retry:
                trouble_since = None
                log.info("joining group %s: joining again: %s", self._group_id, retry)
                self._set_member_id(retry.member_id)
                if retry.member_id:
                    continue
                if self._subscription.tasks:
                    raise TaskMigrated("replaced while joining: the tasks may have moved") from None
                now = self._host.monotonic_s()
                forgotten_since = now if forgotten_since is None else forgotten_since
                self._raise_if_given_up(forgotten_since, retry)
            except ConnectionLost as error:
                if self.progress.is_sent and self._fencing is not None:
                    self._fencing.note_lost_join(self._instance_id)
                now = self._host.monotonic_s()
                trouble_since = now if trouble_since is None else trouble_since
                self._raise_if_given_up(trouble_since, error)
                log.debug("joining group %s: %s; trying again", self._group_id, error)
                self._coordinator.close_connection()
                self._closed.wait(_BACK_OFF_S)

    def _raise_if_given_up(self, since_s: float, trouble: Exception) -> None:
        """Raise BrokerUnavailable if a trouble has lasted for longer than `join_give_up_ms`."""
        if self._is_overdue(since_s, self._timeouts.join_give_up_ms / 1000):
            for_s = self._host.monotonic_s() - since_s
            raise BrokerUnavailable(
                f"can't join group {self._group_id!r}: {trouble} (for {for_s:.0f} s)"
            ) from trouble

    def _set_member_id(self, member_id: str) -> None:
        """Set the member id with which the next JoinGroup is sent; empty for a new member."""
        self.progress = self.progress._replace(membership=Membership(-1, member_id))

    def _send_join_group(self, member_id: str) -> Any:
        """Send JoinGroup and return the response once all members have joined.

        Raises: _RejoinNeeded, ConnectionLost, or StreamsError for a refusal.
        """
        subscription = encode_subscription(self._topics, self._subscription, self._topology)
        check_join_request(self._group_id, subscription, fetch_limits=self._fetch_size_limits)
        with self._coordinator.use_connection() as connection:
            module = load_request_classes(connection, _JOIN_GROUP_API_KEY, 9)
            protocol = module["JoinGroupRequestProtocol"](name="stream", metadata=subscription)
            request = build_entity(
                module["JoinGroupRequest"],
                group_id=self._group_id,
                session_timeout=timedelta(milliseconds=self._timeouts.session_ms),
                rebalance_timeout=timedelta(milliseconds=self._timeouts.rebalance_ms),
                member_id=member_id,
                group_instance_id=self._instance_id,
                protocol_type="consumer",
                protocols=(protocol,),
            )
            # The coordinator answers when all members have joined, at most the rebalance time-out.
            self.progress = self.progress._replace(is_sent=True)
            answer = connection.send_request(
                request,
                timeout_s=self._timeouts.rebalance_ms / 1000 + _JOIN_TIMEOUT_LAPSE_S,
                is_given_up=self._is_given_up,
            )
        self.progress = self.progress._replace(is_sent=False)
        code = answer.error_code
        if code is ErrorCode.none:
            return answer
        if code is ErrorCode.member_id_required:
            raise _RejoinNeeded(answer.member_id, "with the member id that it was given")
        if code in MEMBERSHIP_LOST_ERRORS:
            self._count_fencing_or_raise(code, member_id)
            raise _RejoinNeeded("", f"JoinGroup was answered with {code.name}")
        raise self._to_join_error("join", code)

    def assign_and_sync(self, join_response: Any) -> AssignmentInfo:
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
            self._led_members = {each.group_instance_id or "" for each in join_response.members}
            assignments = {
                member_id: encode_assignment(assigned)
                for member_id, assigned in self._assign(members).items()
            }
            check_group_record(
                self._group_id,
                join_response.members,
                assignments,
                fetch_limits=self._fetch_size_limits,
            )
        with self._coordinator.use_connection() as connection:
            answer = send_sync_group(
                connection,
                self._group_id,
                self._instance_id,
                Membership(join_response.generation_id, join_response.member_id),
                assignments,
                timeout_s=self._timeouts.rebalance_ms / 1000 + _JOIN_TIMEOUT_LAPSE_S,
                is_given_up=self._is_given_up,
            )
        code = answer.error_code
        if code is ErrorCode.none:
            return self._decode_user_data(decode_assignment, answer.assignment)
        if code in (ErrorCode.rebalance_in_progress, ErrorCode.illegal_generation):
            raise _RejoinNeeded(join_response.member_id, f"SyncGroup was answered with {code.name}")
        if code in MEMBERSHIP_LOST_ERRORS:
            self._count_fencing_or_raise(code, join_response.member_id)
            raise _RejoinNeeded("", f"SyncGroup was answered with {code.name}")
        raise self._to_join_error("sync", code)

    def _count_fencing_or_raise(self, code: ErrorCode, member_id: str) -> None:
        """Count FENCED_INSTANCE_ID; raise TaskMigrated if this instance id is to be given up."""
        if code is not ErrorCode.fenced_instance_id or self._fencing is None:
            return
        if self._fencing.count_fencing_and_renew_identity(self._instance_id, member_id):
            self._set_member_id("")
            raise TaskMigrated("another worker joins again and again with this one's instance id")

    def _leave_stale_membership(self, member_id: str) -> None:
        """Leave the group as this static member, so that its next join starts a rebalance.

        The coordinator answers a static member that joins a stable group with its last assignment,
        whatever has changed (KIP-345).
        """
        log.info("%s has another topology than before: it joins anew", self._instance_id)
        self._set_member_id("")  # and no heartbeat is sent of what it leaves
        self._send_leave_group(member_id, "the topology has changed")

    def _decode_user_data(self, decode: Callable[[bytes], T], data: bytes) -> T:
        """Decode user data, and raise StreamsError if it is of another application."""
        try:
            return decode(data)
        except ValueError as error:
            raise StreamsError(explain_foreign_members(self._group_id, str(error))) from error

    def _to_join_error(self, action: str, code: ErrorCode) -> Exception:
        """Return the error that an error code of join or sync stands for.

        Raises: AuthorizationError.
        """
        check_authorized(code, "Read", self._group_id)
        if code in COORDINATOR_UNAVAILABLE_ERRORS:
            return ConnectionLost(f"{action}: {code.name}")
        if code is ErrorCode.inconsistent_group_protocol:
            return StreamsError(
                explain_foreign_members(self._group_id, self._describe_foreign_members(code))
            )
        refusal = (
            f"group {self._group_id!r} refused to {action} member {self._instance_id!r}: "
            f"{code.name} ({code.value})"
        )
        if code is ErrorCode.unknown_server_error:
            refusal += (
                ". So brokers answer, among others, where a group's record is larger than "
                "max.message.bytes of __consumer_offsets: the broker's log tells"
            )
        return StreamsError(refusal)

    def _describe_foreign_members(self, code: ErrorCode) -> str:
        """Return the name of an error code, and who the group's members are where that is told."""
        try:
            with self._coordinator.use_connection() as connection:
                members = describe_foreign_members(connection, self._group_id)
        except ConnectionLost:
            members = ""
        return f"{code.name}: {members}" if members else code.name
