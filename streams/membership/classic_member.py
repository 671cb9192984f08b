"""Join a group by the classic protocol, with our own assignment: any Kafka from 2.5 on.

Theory of operation. One stream thread joins, leaves and reads `read_current_signal_or_raise()`.
Beside it, on the same host, a thread sends heartbeats, and while the member joins another sends
JoinGroup and SyncGroup (`group_join`): the stream thread goes on with its tasks, and enters the new
generation when it takes the assignment (KIP-429). The group's leader assigns the tasks of all
members (`assign`). Workers are static members: one that comes back with its instance id within the
session time-out gets its tasks back without a rebalance, and whoever held the id before is fenced.

    answer to Join, Sync, Heartbeat              what we do
    REBALANCE_IN_PROGRESS                        signal REBALANCE: join again
    MEMBER_ID_REQUIRED                           join again with the id given
    UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION,
    FENCED_INSTANCE_ID                           signal LOST: close without a commit, join afresh;
                                                 fenced twice: as another (`instance_fencing`)
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
    no connection, also a refused one            find the coordinator again, back off
    any other, a refusal that has held           StreamsError
    none, but the stream thread makes no turn    leave, and signal LOST
    for max_poll_interval_ms

On the wire: protocol type `consumer`, protocol name `stream`, ConsumerProtocol's subscription and
assignment with our data as user data, so that Kafka's group tools show the partitions.
Source: KIP-345 (static members), KIP-394 (member id required), KIP-429 (cooperative rebalances),
KIP-814 (skip assignment).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from streams.common.addresses import Address
from streams.common.host import Host
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import StreamsError
from streams.membership.broker_outage import IsOverdue, create_overdue_check
from streams.membership.connection import (
    ConnectionLost,
    OpenConnection,
    build_entity,
    load_request_classes,
)
from streams.membership.coordinator_connection import CoordinatorConnection
from streams.membership.group_join import AbortDeparted, GroupJoin, JoinProgress
from streams.membership.group_member import (
    AssignGroup,
    GroupMember,
    Membership,
    MembershipSignal,
    MemberTimeouts,
    find_leave_reason,
)
from streams.membership.group_offsets import (
    fetch_offsets,
    try_commit_offsets,
)
from streams.membership.group_record import FetchSizeLimits, GroupSizeLimits
from streams.membership.group_requests import is_membership_confirmed
from streams.membership.heartbeat_thread import HeartbeatThread
from streams.membership.instance_fencing import InstanceFencing
from streams.membership.protocol import (
    AssignmentInfo,
    SubscriptionInfo,
)
from streams.topology.declared import DeclaredTopology

log = logging.getLogger(__name__)

_LEAVE_GROUP_API_KEY = 13


class ClassicProtocolMember(GroupMember):
    """Represents one thread's membership of a group, by the classic group protocol.

    `topics` are the topics read, where a subscription names none itself. `topology` is declared to
    whoever leads, and `assign` is called if this member leads, `abort_departed` after it has.
    `fencing` counts how often the member was fenced (`instance_fencing`). `fetch_size_limits` is
    called before what may be too large (`group_record`). Kafka's counterparts are
    AbstractCoordinator and ConsumerCoordinator.
    """

    def __init__(
        self,
        group_id: str,
        instance_id: str,
        topics: Iterable[str],
        topology: DeclaredTopology,
        *,
        open_connection: OpenConnection,
        assign: AssignGroup,
        timeouts: MemberTimeouts,
        is_stopping: Callable[[], bool],
        host: Host,
        is_overdue: IsOverdue | None = None,
        abort_departed: AbortDeparted = lambda members, is_current: None,
        fencing: InstanceFencing | None = None,
        fetch_size_limits: FetchSizeLimits = GroupSizeLimits,
    ) -> None:
        self._group_id = group_id
        self.instance_id = instance_id
        self._topics = tuple(topics)
        self._topology = topology
        self._coordinator = CoordinatorConnection(group_id, open_connection, host)
        self._assign = assign
        self._abort_departed = abort_departed
        self._fencing = fencing
        self._fetch_size_limits = fetch_size_limits
        self._timeouts = timeouts
        self._is_stopping = is_stopping
        self._is_overdue = is_overdue or create_overdue_check(host)
        self._host = host
        self._open_connection = open_connection
        self._current = Membership(-1, "")
        """The membership of the last assignment that was taken, for offsets."""
        self._join: GroupJoin | None = None
        self._join_count = 0
        self._is_generation_over = False
        self._closed = host.create_event()
        self._heartbeats = HeartbeatThread(
            group_id,
            instance_id,
            coordinator=self._coordinator,
            timeouts=timeouts,
            host=host,
            closed=self._closed,
            read_membership=self._read_membership,
            send_leave_group=self._send_leave_group_or_log,
            fencing=fencing,
        )
        self.is_leader = False
        """True while this member is the leader of the group's present generation."""

    @property
    def current_membership(self) -> Membership:
        """Return the member id and generation that the member has now."""
        return self._current

    @property
    def coordinator_address(self) -> Address | None:
        """Return where the group's coordinator is, while it is connected to; None if unknown."""
        return self._coordinator.address

    @property
    def confirmed_at_s(self) -> float | None:
        """Return the monotonic time in seconds at which the group still had this member."""
        return self._heartbeats.confirmed_at_s

    @property
    def silent_since_s(self) -> float | None:
        """Return the monotonic time in seconds since when heartbeats get no answer."""
        return self._heartbeats.silent_since_s

    @property
    def unanswered_since_s(self) -> float | None:
        """Return the monotonic time in seconds since when a broker lets a heartbeat wait."""
        return self._heartbeats.unanswered_since_s

    def read_current_signal_or_raise(self) -> MembershipSignal:
        """Return ASSIGNED if a join is over, else what heartbeats signalled in this generation.

        While a join is not over it is NOTHING: the join finds out by itself what a heartbeat may be
        answered with meanwhile.
        Raises: the error that has ended the heartbeats, such as AuthenticationError.
        """
        signal = self._heartbeats.read_current_signal_or_raise()
        join = self._join
        if join is None:
            return signal
        return MembershipSignal.ASSIGNED if join.progress.is_over else MembershipSignal.NOTHING

    def _read_membership(self) -> Membership:
        """Return the membership that heartbeats keep: during a join, what that has come to."""
        join = self._join
        return self._current if join is None else join.progress.membership

    def mark_progress(self) -> None:
        """Record that the stream thread is alive, so that its heartbeats go on.

        Where this is not called for the rebalance time-out (`max_poll_interval_ms`), heartbeats end
        and the member leaves: others get its tasks, and it reads the signal LOST when it goes on.
        """
        self._heartbeats.mark_progress()

    @property
    def is_joining(self) -> bool:
        """Return whether a join was started whose assignment has not been taken."""
        return self._join is not None

    @property
    def is_generation_over(self) -> bool:
        """Return whether the group is known to have left the generation of this member.

        Then it refuses every offset until the next assignment is taken.
        """
        join = self._join
        return self._is_generation_over or (join is not None and join.progress.is_answered)

    def mark_generation_over(self) -> None:
        """Note that the group has refused offsets of this generation."""
        self._is_generation_over = True

    def start_joining(self, subscription: SubscriptionInfo) -> None:
        """Start a join beside the stream thread, which commits in the old generation meanwhile."""
        assert self._join is None, f"{self.instance_id} joins already"
        self._heartbeats.ensure_started()
        self._join_count += 1
        join_number = self._join_count
        # A join closes its connection when it ends: the next one may be hours later.
        self._join = GroupJoin(
            self._group_id,
            self.instance_id,
            self._current.member_id,
            topics=subscription.topics or self._topics,
            subscription=subscription,
            topology=self._topology,
            coordinator=CoordinatorConnection(self._group_id, self._open_connection, self._host),
            assign=self._assign,
            abort_departed=self._abort_departed,
            timeouts=self._timeouts,
            is_overdue=self._is_overdue,
            host=self._host,
            closed=self._closed,
            is_given_up=lambda: self._closed.is_set() or self._is_stopping(),
            is_latest=lambda: self._join_count == join_number,
            send_leave_group=self._send_leave_group_or_log,
            fencing=self._fencing,
            fetch_size_limits=self._fetch_size_limits,
        )

    def peek_assignment(self, wait_s: float) -> tuple[Membership, AssignmentInfo] | None:
        """Return the assignment of the join, which stays to be taken, and its membership."""
        join = self._join
        if join is None or not join.wait_until_over(wait_s):
            return None
        progress = join.progress
        return None if progress.assignment is None else (progress.membership, progress.assignment)

    def enter_assigned_generation(self, wait_s: float = 0.0) -> AssignmentInfo | None:
        """Return the assignment of the join that was started, and enter its generation with it.

        Returns None if there is none after `wait_s` seconds. Raises what has ended the join:
        StreamsError where the coordinator refuses for good, or can't be found for
        `join_give_up_ms`; TaskMigrated where it does not know this member any more while the member
        holds tasks; what `assign` raises.
        """
        self.mark_progress()
        join = self._join
        assert join is not None, f"{self.instance_id} has not started a join"
        if not join.wait_until_over(wait_s):
            return None
        progress = join.progress
        if not progress.is_over:  # given up
            return None
        # In this order: heartbeats read one or the other, and both are this membership.
        self._current = progress.membership
        self._join = None
        self._is_generation_over = progress.failure is not None
        if progress.failure is not None:
            raise progress.failure
        self.is_leader = progress.is_leader
        self.mark_progress()
        return progress.assignment

    def try_commit_offsets(self, offsets: Iterable[tuple[Partition, OffsetAndMetadata]]) -> bool:
        """Commit offsets outside a transaction; return False if the group refuses this member.

        Raises: ConnectionLost where the outcome is unknown: commit again.
        """
        generation, member_id = self._current
        if generation < 0:  # a group without members would take the offsets from anybody
            return False
        with self._coordinator.use_connection() as connection:
            return try_commit_offsets(
                connection,
                self._group_id,
                generation,
                member_id,
                self.instance_id,
                offsets,
            )

    def is_membership_confirmed(self) -> bool:
        """Return whether the coordinator still has this member in its generation.

        Raises: ConnectionLost where that can't be known now, StreamsError for a refusal.
        """
        with self._coordinator.use_connection() as connection:
            return is_membership_confirmed(
                connection,
                self._group_id,
                self.instance_id,
                self._current,
            )

    def fetch_committed_offsets(self, partitions: Iterable[Partition] | None) -> CommittedOffsets:
        """Fetch the group's committed offsets, and the partitions whose offset is still pending.

        Raises: ConnectionLost where no coordinator answers, or one that no other server calls the
        coordinator: fetch again.
        """
        with self._coordinator.use_connection() as connection:
            fetched = fetch_offsets(connection, self._group_id, partitions, operation="Read")
            # Afterwards: a broker that another has replaced until now had replaced it then.
            self._coordinator.confirm_coordinator(connection)
            return fetched

    def renew_connection(self) -> None:
        """Open another connection at the next request; the membership goes on."""
        self._coordinator.renew_connection()

    def leave_group(self, *, is_handed_over: bool = False, has_failed: bool = False) -> None:
        """Leave the group at once, so that others need not wait for the session to expire.

        `is_handed_over`: the membership is that of a former member with this instance id.
        """
        progress = self._end_threads()
        member_id = progress.membership.member_id
        # After a join that was given up there is no member id; the instance id is enough then.
        if member_id or progress.is_sent or is_handed_over:
            self._send_leave_group_or_log(member_id, find_leave_reason(has_failed))
        self._coordinator.close_connection()

    def _send_leave_group_or_log(self, member_id: str, reason: str) -> None:
        """Send LeaveGroup for a member id, and only log it if no answer comes."""
        try:
            with self._coordinator.use_connection() as connection:
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

    def end_without_leaving_group(self) -> None:
        """End without leaving the group, so that a successor with this instance id takes over."""
        self._end_threads()
        self._coordinator.close_connection()

    def _end_threads(self) -> JoinProgress:
        """End the heartbeats and a join, give up the membership, and return what it had come to."""
        self._closed.set()
        self._heartbeats.join_thread()
        progress = JoinProgress(self._current)
        if self._join is not None:
            self._join.join_thread()
            progress = self._join.progress
        self._current, self._join = Membership(-1, ""), None
        return progress
