"""Send a streams member's heartbeats, and keep its state by their answers.

Theory of operation. The heartbeat thread sends one when it is due, and at once when the member
joins or acknowledges. `confirm` sends one from another thread. One lock makes heartbeats and
commits of offsets take turns (`hold_epoch`): while a commit with the member's epoch is on its way,
no heartbeat changes the epoch. Another lock, which is never held while anybody waits for an answer,
guards the state.

    answer                                       what follows
    none, or a status                            the state machine (`member_state`)
    UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH;      the membership is lost; a join is repeated
    GROUP_ID_NOT_FOUND to one that is no join
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
    no connection, no answer                     the coordinator is found again, after a while
    any other                                    the thread ends with the broker's message

The answer after a lost one may be silent on the tasks that the lost one told. The member then takes
those with which the group describes it; where it may not describe the group, it joins anew.
After a change, and while the group is not ready, heartbeats are sent more often than the broker
asks for: the next step of others, or of the broker, is waited for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeAlias

from kio.schema.errors import ErrorCode

from streams.common.host import Event, Host, SpawnedThread
from streams.errors import BrokerUnavailable, StreamsError, UserError
from streams.membership.broker_outage import IsOverdue
from streams.membership.connection import BrokerConnection, ConnectionLost, ConnectionUnanswered
from streams.membership.coordinator_connection import CoordinatorConnection
from streams.membership.group_member import CommitLimitS, MemberTimeouts
from streams.membership.group_offsets import COORDINATOR_UNAVAILABLE_ERRORS
from streams.membership.streams.epoch_lock import EpochLock
from streams.membership.streams.group_description import (
    describe_streams_group,
    describe_streams_member,
)
from streams.membership.streams.group_readiness import GroupReadiness
from streams.membership.streams.heartbeat_request import (
    HeartbeatRefusal,
    MemberMetadata,
    send_heartbeat,
)
from streams.membership.streams.member_state import (
    LEAVING_EPOCH,
    HeartbeatAnswer,
    MemberHeartbeat,
    MemberPhase,
    TaskMembership,
    apply_answer,
    apply_description,
    apply_loss,
    apply_lost_answer,
    apply_sent_heartbeat,
    build_heartbeat,
)
from streams.membership.streams.refusals import explain_refusal
from streams.membership.streams.statuses import is_group_ready
from streams.membership.streams.topology_differences import find_topology_differences

IsStuck: TypeAlias = bool

IsMember: TypeAlias = bool

log = logging.getLogger(__name__)

LOST_ERRORS = {ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch}
_JOIN_BACK_OFF_S, _BACK_OFF_S = 0.1, 0.5
_ATTENTIVE_INTERVAL_MS = 1_000
_ATTENTIVE_FOR_S = 10.0
"""For how long after a change heartbeats are sent at the shorter interval."""


class HeartbeatLoop:
    """Sends the heartbeats of one member, and holds its state.

    `prepare_join` is called before the first heartbeat with epoch 0. Kafka's counterpart is
    StreamsGroupHeartbeatRequestManager.
    """

    def __init__(
        self,
        metadata: MemberMetadata,
        *,
        coordinator: CoordinatorConnection,
        timeouts: MemberTimeouts,
        host: Host,
        is_overdue: IsOverdue,
        prepare_join: Callable[[], None] = lambda: None,
    ) -> None:
        self._metadata = metadata
        self._coordinator = coordinator
        self._timeouts = timeouts
        self._host = host
        self._is_overdue = is_overdue
        self._prepare_join = prepare_join
        self._epoch_lock = EpochLock(host, timeouts.session_ms)
        self._state_lock = host.create_lock()
        self._closed: Event = host.create_event()
        self._due: Event = host.create_event()
        self._changed: Event = host.create_event()
        """Set when the state has changed by an answer, for whoever waits for an assignment."""
        self._thread: SpawnedThread | None = None
        self._failure: UserError | None = None
        self._progressed_at_s = 0.0
        self._interval_ms = timeouts.heartbeat_ms
        self._changed_at_s = float("-inf")
        self._trouble_since_s: float | None = None
        self.readiness = GroupReadiness(
            metadata.group_id, host.monotonic_s, is_overdue, timeouts.join_give_up_ms
        )
        self._is_prepared = False
        self.state = TaskMembership()
        """The state of the membership, replaced as a whole."""
        self.confirmed_at_s: float | None = None
        """The monotonic time in s at which the last heartbeat was sent that was accepted."""
        self.silent_since_s: float | None = None
        """The monotonic time in s since when heartbeats get no answer."""
        self.unanswered_since_s: float | None = None
        """The monotonic time in s since when a broker lets a heartbeat wait."""

    def change_state(self, change: Callable[[TaskMembership], TaskMembership]) -> TaskMembership:
        """Replace the state by what `change` returns of it; send a heartbeat if one is due."""
        with self._state_lock:
            self.state = changed = change(self.state)
        if changed.is_heartbeat_due:
            self._due.set()
        return changed

    def hold_epoch(self) -> AbstractContextManager[CommitLimitS]:
        """Return a context manager in whose block no heartbeat is sent that may change the epoch.

        It begins once the heartbeat that is on its way is answered, or is given up for it, and
        yields the seconds that it may take.
        """
        return self._epoch_lock.hold_for_commit(lambda: self.confirmed_at_s)

    def ensure_started(self) -> None:
        """Start the thread if it was not started yet."""
        self.mark_progress()
        if self._thread is None:
            name = f"{self._metadata.member_id}-heartbeat"
            self._thread = self._host.spawn_thread(name, self._send_heartbeats_until_closed)

    def mark_progress(self) -> None:
        """Record that the stream thread is alive, so that its heartbeats go on."""
        self._progressed_at_s = self._host.monotonic_s()

    def raise_failure_if_any(self) -> None:
        """Raise the error that has ended the heartbeats, if one has."""
        if self._failure is not None:
            raise self._failure

    def wait_for_change(self, timeout_s: float) -> None:
        """Wait until an answer has changed the state, at most `timeout_s` seconds."""
        if self._changed.wait(timeout_s):
            self._changed.clear()

    def end_thread(self) -> None:
        """End the thread, and wait until it has ended."""
        self._closed.set()
        self._due.set()
        if self._thread is not None:
            self._thread.join()

    def send_heartbeat_once(self, *, shutdown_application: bool = False) -> IsMember:
        """Send a heartbeat in the calling thread; return whether the member is one afterwards.

        Raises: ConnectionLost where no coordinator answers, StreamsError for a refusal.
        """
        began_s = self._host.monotonic_s()
        if self.state.phase in (MemberPhase.UNJOINED, MemberPhase.LOST):
            return False
        try:
            with (
                self._coordinator.use_connection() as connection,  # a commit waits for none
                self._epoch_lock.hold_for_heartbeat(),
            ):
                return self._send_on_connection(
                    connection, shutdown_application=shutdown_application
                )
        except ConnectionLost as error:
            self._note_silence(error, began_s)
            raise

    def _send_on_connection(
        self, connection: BrokerConnection, *, shutdown_application: bool
    ) -> IsMember:
        """Send the heartbeat that is due now, and take its answer.

        Returns whether the member is one afterwards.
        """
        state = self.state
        if state.phase in (MemberPhase.UNJOINED, MemberPhase.LOST):
            return False
        sent, sent_at_s = build_heartbeat(state), self._host.monotonic_s()
        self.change_state(lambda now: apply_sent_heartbeat(now, sent))
        answer = send_heartbeat(
            connection,
            self._metadata,
            sent,
            shutdown_application=shutdown_application,
            is_given_up=lambda: self._epoch_lock.is_commit_overdue,
        )
        if isinstance(answer, HeartbeatRefusal) and answer.code in COORDINATOR_UNAVAILABLE_ERRORS:
            raise ConnectionLost(f"no coordinator: {answer.code.name}")
        self.silent_since_s = self.unanswered_since_s = self._trouble_since_s = None
        if isinstance(answer, HeartbeatAnswer):
            self.confirmed_at_s = sent_at_s
            self._apply_answer_and_log(sent, answer)
            if not self.state.is_told_certain:
                self._ask_for_tasks(connection, sent)
        else:
            self._apply_refusal_or_raise(connection, sent, answer)
        return self.state.is_member and self.state.join_number == sent.join_number

    def _ask_for_tasks(self, connection: BrokerConnection, sent: MemberHeartbeat) -> None:
        """Take the tasks that the group has for the member after its last heartbeat.

        Raises: ConnectionLost where no coordinator answers.
        """
        group_id, member_id = self._metadata.group_id, self._metadata.member_id
        try:
            described = describe_streams_member(connection, group_id, member_id)
        except StreamsError as error:
            log.warning("%s joins anew after a lost answer: %s", member_id, error)
            described = None
        if described is None:
            self.change_state(lambda now: apply_loss(now, sent))
        else:
            epoch, assigned = described.epoch, described.assigned
            self.change_state(lambda now: apply_description(now, sent, epoch, assigned))
        self._changed.set()

    def send_leave(self, member_id: str, reason: str) -> None:
        """Send the heartbeat by which a member leaves, and only log it if no answer comes."""
        log.info("%s leaves group %s: %s", member_id, self._metadata.group_id, reason)
        leaving = MemberHeartbeat(0, LEAVING_EPOCH, None)
        metadata = MemberMetadata(
            self._metadata.group_id,
            member_id,
            "",
            self._metadata.topology,
            self._timeouts.rebalance_ms,
        )
        try:
            with self._coordinator.use_connection() as connection:
                send_heartbeat(connection, metadata, leaving)
        except (ConnectionLost, StreamsError) as error:
            log.info("left group %s without an answer: %s", self._metadata.group_id, error)

    def _send_heartbeats_until_closed(self) -> None:
        """Send heartbeats until the member is closed, or until an error ends them."""
        try:
            while not self._closed.is_set():
                self._due.wait(self._find_heartbeat_wait_s())
                self._due.clear()
                if not self._closed.is_set():
                    self._send_heartbeat_if_due()
        except UserError as error:
            self._keep_failure(error)
        except Exception as error:
            log.exception("the heartbeats of %s ended", self._metadata.member_id)
            self._keep_failure(
                StreamsError(f"the heartbeats of {self._metadata.member_id} ended: {error!r}")
            )

    def _keep_failure(self, error: UserError) -> None:
        """Keep the error that ends the heartbeats, for the stream thread to raise."""
        self._failure = error
        self._changed.set()

    def _send_heartbeat_if_due(self) -> None:
        """Send one heartbeat, if the member is one or joins. Raises StreamsError."""
        state = self.state
        if state.phase not in (MemberPhase.JOINING, MemberPhase.JOINED):
            return
        if state.is_member and self._log_if_stuck():
            self.send_leave(self._metadata.member_id, "max_poll_interval_ms was exceeded")
            self.change_state(
                lambda now: apply_loss(now, MemberHeartbeat(state.join_number, 0, None))
            )
            self._changed.set()
            return
        try:
            if not self._is_prepared:
                self._prepare_join()
                self._is_prepared = True
            self.send_heartbeat_once()
        except ConnectionLost as error:
            log.debug("heartbeat of %s: %s", self._metadata.member_id, error)
            self._raise_if_given_up(error)
            is_joining = self.state.phase is MemberPhase.JOINING
            self._closed.wait(_JOIN_BACK_OFF_S if is_joining else _BACK_OFF_S)
            return
        if self.state.phase is MemberPhase.JOINING:  # the join was refused, or is another one
            self._closed.wait(_JOIN_BACK_OFF_S)
        self.readiness.require_topics()

    def _find_heartbeat_wait_s(self) -> float:
        """Return in how many seconds the next heartbeat is due."""
        if self.state.is_heartbeat_due:
            return 0.0
        state = self.state
        is_attentive = (
            not is_group_ready(state.statuses)
            or not state.is_told_certain
            or self._host.monotonic_s() - self._changed_at_s < _ATTENTIVE_FOR_S
        )
        interval_ms = min(self._interval_ms, self._timeouts.heartbeat_ms)
        return (min(interval_ms, _ATTENTIVE_INTERVAL_MS) if is_attentive else interval_ms) / 1000

    def _apply_answer_and_log(self, sent: MemberHeartbeat, answer: HeartbeatAnswer) -> None:
        """Apply the answer to a heartbeat, and log the statuses of the group that are new."""
        before = self.state
        after = self.change_state(lambda now: apply_answer(now, sent, answer))
        self._interval_ms = answer.interval_ms or self._timeouts.heartbeat_ms
        if (before.epoch, before.told) != (after.epoch, after.told):
            self._changed_at_s = self._host.monotonic_s()
        self.readiness.update_statuses_and_log(answer.statuses, has_tasks=not after.told.is_empty)
        self._changed.set()

    def _apply_refusal_or_raise(
        self, connection: BrokerConnection, sent: MemberHeartbeat, refusal: HeartbeatRefusal
    ) -> None:
        """Note that the membership is lost. Raises StreamsError for any other refusal.

        A group whose members were all fenced may be removed, and another one be formed with its
        name: the join that follows tells whether that is one of another protocol.
        """
        is_group_gone = refusal.code is ErrorCode.group_id_not_found and not sent.is_join
        if refusal.code not in LOST_ERRORS and not is_group_gone:
            raise explain_refusal(
                self._metadata.group_id,
                refusal.code,
                refusal.message,
                partial(self._find_topology_differences, connection),
            )
        log.info("%s has lost its membership: %s", self._metadata.member_id, refusal.code.name)
        self.change_state(lambda now: apply_loss(now, sent))
        self._changed.set()

    def _find_topology_differences(self, connection: BrokerConnection) -> tuple[str, ...] | None:
        """Return in what the group's topology differs from the member's; None if it isn't told."""
        try:
            described = describe_streams_group(connection, self._metadata.group_id)
        except (ConnectionLost, StreamsError) as error:
            log.info("the topology of %s can't be asked for: %s", self._metadata.group_id, error)
            return None
        if described is None:
            return None
        return find_topology_differences(described.topology, self._metadata.topology)

    def _note_silence(self, error: ConnectionLost, sent_at_s: float) -> None:
        """Note that a heartbeat got no answer, which may have changed what the group knows."""
        self.change_state(apply_lost_answer)
        if isinstance(error, ConnectionUnanswered) and self.unanswered_since_s is None:
            self.unanswered_since_s = sent_at_s
        if self.silent_since_s is None:
            self.silent_since_s = self._host.monotonic_s()

    def _raise_if_given_up(self, error: Exception) -> None:
        """Raise BrokerUnavailable if a join has had no answer for longer than is allowed."""
        now_s = self._host.monotonic_s()
        if self.state.phase is not MemberPhase.JOINING:
            return
        since_s = self._trouble_since_s = self._trouble_since_s or now_s
        if self._is_overdue(since_s, self._timeouts.join_give_up_ms / 1000):
            raise BrokerUnavailable(
                f"can't join group {self._metadata.group_id!r}: {error} "
                f"(for {now_s - since_s:.0f} s)"
            ) from error

    def _log_if_stuck(self) -> IsStuck:
        """Return whether the stream thread has stood still for the rebalance time-out."""
        silent_ms = (self._host.monotonic_s() - self._progressed_at_s) * 1000
        if silent_ms <= self._timeouts.rebalance_ms:
            return False
        log.warning(
            "%s leaves group %s: its thread has been busy for %d ms, and max_poll_interval_ms is "
            "%d. A record takes too long, or a broker that does not answer: the lines around tell. "
            "Make it quicker, or raise the setting",
            self._metadata.member_id,
            self._metadata.group_id,
            silent_ms,
            self._timeouts.rebalance_ms,
        )
        return True
