"""Be a member of a streams group (KIP-1071): one stream thread's, any Kafka from 4.2 on.

The stream thread joins, takes what it is told, and acknowledges; heartbeats do the rest
(`heartbeat_loop`, `member_state`). What the runtime calls a generation is the member's epoch.

    the runtime asks            the answer
    start_joining               epoch 0: the group is told all of the member, and that it has no
                                tasks; where it has some, they are reported, and what was told is
                                to be taken once more
    is_joining                  the member joins, or tasks were told that are not taken yet
    is_generation_over          never: a broker accepts offsets of tasks that it has left with the
                                member, with the epoch before as well
    is_membership_confirmed          a heartbeat's answer

The member id is made anew with each start of a process, as the protocol demands. A worker that
comes back after a crash therefore ends the memberships that its process had before, which its state
directory's process id tells (`former_members`): others would wait for the end of their sessions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial

from streams.common.addresses import Address
from streams.common.host import Host
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import StreamsError, TaskMigrated
from streams.membership.broker_outage import IsOverdue, create_overdue_check
from streams.membership.connection import OpenConnection
from streams.membership.coordinator_connection import CoordinatorConnection
from streams.membership.group_member import (
    CommitLimitS,
    GroupMember,
    Membership,
    MembershipSignal,
    MemberTimeouts,
    MustRejoin,
    find_leave_reason,
)
from streams.membership.group_offsets import fetch_offsets, try_commit_offsets
from streams.membership.protocol import AssignmentInfo, SubscriptionInfo
from streams.membership.streams.former_members import find_former_members
from streams.membership.streams.heartbeat_loop import HeartbeatLoop
from streams.membership.streams.heartbeat_request import MemberMetadata
from streams.membership.streams.member_state import (
    MemberPhase,
    acknowledge_tasks,
    mark_offer_taken,
    repeat_offer,
    start_joining,
)
from streams.membership.streams.told_assignment import (
    build_assignment,
    group_tasks_by_role,
    knows_all_topics,
)

log = logging.getLogger(__name__)

_NO_GENERATION = -1


class StreamsProtocolMember(GroupMember):
    """Represents one thread's membership of a streams group.

    `instance_id` identifies the thread over restarts, in transactional ids and messages; the group
    does not know it. `fetch_partition_counts` returns those of all topics. Kafka's counterpart is
    StreamsMembershipManager.
    """

    static_instance_id = None

    def __init__(
        self,
        metadata: MemberMetadata,
        instance_id: str,
        *,
        open_connection: OpenConnection,
        fetch_partition_counts: Callable[[], Mapping[str, int]],
        timeouts: MemberTimeouts,
        host: Host,
        is_overdue: IsOverdue | None = None,
    ) -> None:
        self._metadata = metadata
        self.instance_id = instance_id
        self.is_leader = False
        self._fetch_partition_counts = fetch_partition_counts
        self._shutdown_reason = ""
        self._acknowledged_join: int | None = None
        """The number of the join with which the tasks came that the stream thread has."""
        self._coordinator = CoordinatorConnection(metadata.group_id, open_connection, host)
        self._heartbeats = HeartbeatLoop(
            metadata,
            coordinator=self._coordinator,
            timeouts=timeouts,
            host=host,
            is_overdue=is_overdue or create_overdue_check(host),
            prepare_join=self._end_former_memberships,
        )

    @property
    def current_membership(self) -> Membership:
        """Return the member id and the last epoch of the member, which it may have lost since."""
        epoch = self._heartbeats.state.epoch
        return Membership(epoch if epoch > 0 else _NO_GENERATION, self._metadata.member_id)

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

    @property
    def unready_reason(self) -> str:
        """Return why the group has no tasks, as its brokers say; empty while it has some."""
        return self._heartbeats.readiness.reason

    def mark_progress(self) -> None:
        """Record that the stream thread is alive, so that its heartbeats go on."""
        self._heartbeats.mark_progress()

    def read_current_signal_or_raise(self) -> MembershipSignal:
        """Return LOST if the group has lost this member, ASSIGNED if it has told it other tasks.

        Raises: the error that has ended the heartbeats, such as StreamsError for a refusal.
        """
        self._heartbeats.raise_failure_if_any()
        state = self._heartbeats.state
        if state.phase is MemberPhase.LOST:
            return MembershipSignal.LOST
        return MembershipSignal.ASSIGNED if state.has_offer else MembershipSignal.NOTHING

    @property
    def is_joining(self) -> bool:
        """Return whether the member joins, or was told tasks that are not taken yet."""
        state = self._heartbeats.state
        return state.phase is MemberPhase.JOINING or (
            state.phase is MemberPhase.JOINED and (state.taken is None or state.has_offer)
        )

    @property
    def is_generation_over(self) -> bool:
        """Return False: a member's tasks are its own until it has given them up."""
        return False

    def mark_generation_over(self) -> None:
        """Do nothing: the next heartbeat answer says which tasks are still the member's."""

    def has_kept_tasks_until(self, owned_generation: int, generation: int) -> bool:
        """Return whether the tasks owned have been the member's all the while.

        They have, unless it has joined anew since: it lost its membership, and all of them with it.
        """
        is_same_join = self._acknowledged_join == self._heartbeats.state.join_number
        return owned_generation != _NO_GENERATION and is_same_join

    def start_joining(self, subscription: SubscriptionInfo) -> None:
        """Join the group with no tasks; a member that has some is offered them once more.

        Raises: TaskMigrated if the membership is lost in which the tasks came that it has.
        """
        state, has_tasks = self._heartbeats.state, subscription.generation != _NO_GENERATION
        if state.phase is MemberPhase.LOST and has_tasks:
            raise TaskMigrated("the coordinator does not know this member any more")
        self._shutdown_reason = subscription.shutdown
        is_fresh = not has_tasks or not state.is_member
        self._heartbeats.change_state(start_joining if is_fresh else repeat_offer)
        self._heartbeats.ensure_started()

    def peek_assignment(self, wait_s: float) -> None:
        """Return None: the member commits with the epoch that it has."""

    def enter_assigned_generation(self, wait_s: float = 0.0) -> AssignmentInfo | None:
        """Return the tasks that the group has told, once it has; None if not within `wait_s`.

        Raises: the error that has ended the heartbeats; what `fetch_partition_counts` raises, and
        then the tasks are still to be taken.
        """
        heartbeats = self._heartbeats
        heartbeats.mark_progress()
        heartbeats.raise_failure_if_any()
        if not heartbeats.state.has_offer and wait_s > 0:
            heartbeats.wait_for_change(wait_s)
            heartbeats.raise_failure_if_any()
        if not heartbeats.state.has_offer:
            return None
        if self._shutdown_reason:
            heartbeats.send_heartbeat_once(shutdown_application=True)
        offered, counts = heartbeats.state, self._fetch_partition_counts()
        declared = self._metadata.topology.declared
        if not knows_all_topics(offered.told, declared, counts):  # which were created just now
            heartbeats.wait_for_change(wait_s)
            return None
        if not offered.told.is_empty:
            heartbeats.readiness.note_partition_counts(counts)
        taken = heartbeats.change_state(
            lambda now: mark_offer_taken(now) if now.told == offered.told else now
        )
        heartbeats.mark_progress()
        is_outdated = taken.told != offered.told
        return None if is_outdated else build_assignment(taken, declared, counts)

    def acknowledge_assignment(self, assigned: AssignmentInfo) -> MustRejoin:
        """Report that the tasks are as assigned, the revoked ones closed; it takes no join."""
        owned = group_tasks_by_role(assigned)
        state = self._heartbeats.change_state(partial(acknowledge_tasks, owned=owned))
        self._acknowledged_join = state.join_number
        return False

    def hold_membership(self) -> AbstractContextManager[CommitLimitS]:
        """Return a context manager in whose block no heartbeat can change the member's epoch.

        It yields the seconds that the block may take: the group hears nothing of the member.
        """
        return self._heartbeats.hold_epoch()

    def try_commit_offsets(self, offsets: Iterable[tuple[Partition, OffsetAndMetadata]]) -> bool:
        """Commit offsets outside a transaction; return False if the group refuses this member.

        Raises: ConnectionLost where the outcome is unknown: commit again.
        """
        with self._coordinator.use_connection() as connection, self.hold_membership():
            generation, member_id = self.current_membership
            if generation < 0:  # a group without members would take the offsets from anybody
                return False
            group_id = self._metadata.group_id
            return try_commit_offsets(connection, group_id, generation, member_id, None, offsets)

    def is_membership_confirmed(self) -> bool:
        """Return whether the coordinator still has this member, as a heartbeat's answer says.

        Raises: ConnectionLost where that can't be known now, StreamsError for a refusal.
        """
        return self._heartbeats.send_heartbeat_once()

    def fetch_committed_offsets(self, partitions: Iterable[Partition] | None) -> CommittedOffsets:
        """Fetch the group's committed offsets, and the partitions whose offset is still pending.

        Raises: ConnectionLost where no coordinator answers, or one that no other server calls the
        coordinator: fetch again.
        """
        with self._coordinator.use_connection() as connection:
            fetched = fetch_offsets(
                connection, self._metadata.group_id, partitions, operation="Read"
            )
            self._coordinator.confirm_coordinator(connection)
            return fetched

    def renew_connection(self) -> None:
        """Open another connection at the next request; the membership goes on."""
        self._coordinator.renew_connection()

    def leave_group(self, *, is_handed_over: bool = False, has_failed: bool = False) -> None:
        """Leave the group at once, so that others need not wait for the session to expire."""
        self._heartbeats.end_thread()
        state = self._heartbeats.state
        if state.is_member or state.is_sent or is_handed_over:
            self._heartbeats.send_leave(self._metadata.member_id, find_leave_reason(has_failed))
        self._coordinator.close_connection()

    def end_without_leaving_group(self) -> None:
        """End without leaving the group: a successor in this process has the same member id."""
        self._heartbeats.end_thread()
        self._coordinator.close_connection()

    def _end_former_memberships(self) -> None:
        """Leave the group for members that this worker's process had before it was started anew.

        Raises: ConnectionLost where no coordinator answers.
        """
        try:
            with self._coordinator.use_connection() as connection:
                metadata = self._metadata
                former = find_former_members(connection, metadata.group_id, metadata.member_id)
        except StreamsError as error:  # such as a missing right to describe the group
            log.info("former members of this worker are not looked for: %s", error)
            return
        for member_id in former:
            self._heartbeats.send_leave(member_id, "its worker was started anew")
